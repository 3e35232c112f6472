#include "store/template_sections.h"

#include "store/toml_section.h"

namespace atl::store {
namespace {

std::string list_text(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? ", " : "") + toml_text(text);
  return list + "]";
}

std::string quoted(const std::string& key, const std::string& value) {
  return key + " = " + toml_text(value) + "\n";
}

std::string number(const std::string& key, uint64_t value, const std::string& unit) {
  return quoted(key, std::to_string(value) + unit);
}

std::string cpu_text(uint32_t millis) {
  std::string thousandths = std::to_string(1000 + millis % 1000).substr(1);
  return std::to_string(millis / 1000) + "." + thousandths;
}

std::string run_text(const LanguageRun& run) {
  std::string text = "[[run]]\n" + quoted("language", run.language) + quoted("file", run.file);
  if (!run.inline_command.empty()) text += "inline = " + list_text(run.inline_command) + "\n";
  if (!run.compile.empty()) text += "compile = " + list_text(run.compile) + "\n";
  return text + "command = " + list_text(run.command) + "\n";
}

std::string network_text(const TemplateManifest& manifest) {
  std::string text = "[network]\nallow = " + list_text(manifest.network_allow) + "\n";
  if (manifest.upstream_proxy.empty()) return text;
  text += "[network.upstream]\n" + quoted("proxy", manifest.upstream_proxy);
  if (!manifest.upstream_credentials.empty())
    text += quoted("credentials", manifest.upstream_credentials);
  return text;
}

}  // namespace

std::string defaults_text(const TemplateDefaults& defaults) {
  constexpr std::string_view kPersistences[] = {"ephemeral", "persistent", "checkpoint"};
  std::string text = "[defaults]\n";
  text += quoted("isolation", std::string(isolation_name(defaults.isolation)));
  text += quoted("latency", std::string(latency_name(defaults.latency)));
  text +=
      quoted("persistence", std::string(kPersistences[static_cast<size_t>(defaults.persistence)]));
  text += number("ttl", defaults.ttl_ms, "ms");
  text += number("idle_ttl", defaults.idle_ttl_ms, "ms");
  text += "cpu = " + cpu_text(defaults.cpu_millis) + "\n";
  text += number("memory", defaults.memory_bytes, "B");
  text += number("disk", defaults.disk_bytes, "B");
  text += "pids = " + std::to_string(defaults.pids) + "\n";
  text += number("output", defaults.output_bytes, "B");
  text += "open_files = " + std::to_string(defaults.open_files) + "\n";
  if (defaults.disk_bytes_per_second > 0)
    text += number("disk_rate", defaults.disk_bytes_per_second, "B");
  if (defaults.cpu_time_ms > 0) text += number("cpu_time", defaults.cpu_time_ms, "ms");
  text += quoted("user", defaults.user);
  if (!defaults.directory.empty()) text += quoted("cwd", defaults.directory);
  if (defaults.environment.empty()) return text;
  text += "[defaults.env]\n";
  for (const auto& [name, value] : defaults.environment) text += quoted(name, value);
  return text;
}

std::string start_text(const StartProgram& start) {
  std::string text = "[start]\n" + quoted("command", start.command);
  if (!start.ready.empty()) text += quoted("ready", start.ready);
  return text + number("ready_timeout", start.ready_timeout_ms, "ms");
}

std::string inherited_text(const TemplateManifest& own, const TemplateManifest& base) {
  std::string text = "\n";
  if (!own.context && base.context)
    text += "[context]\n" + quoted("language", base.context->language) +
            "preload = " + list_text(base.context->preload) + "\n";
  if (own.runs.empty())
    for (const LanguageRun& run : base.runs) text += run_text(run);
  if (!own.start && base.start) text += start_text(*base.start);
  if (!own.has_network) text += network_text(base);
  if (!own.has_outputs)
    text += "[outputs]\ncollect = " + list_text(base.outputs_collect) +
            "\nmode = " + (base.outputs_mode == OutputMode::kRich ? "\"rich\"" : "\"text\"") + "\n";
  if (!own.has_defaults) text += defaults_text(base.defaults);
  return text;
}

}  // namespace atl::store
