// The commands about templates, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

void add_build(CLI::App& app, Typed& typed) {
  app.add_option("source", typed.directory,
                 "A folder with template.toml, or the name of a template that comes with Atoll")
      ->type_name("DIR|NAME");
  app.add_flag("--all", typed.all, "Every template that comes with Atoll and is not built");
  app.add_flag("--anew", typed.anew, "Also if nothing has changed, for newer packages");
  app.add_flag("-v,--verbose", typed.verbose, "Show the log");
}

void add_template_name(CLI::App& app, Typed& typed) {
  app.add_option("name", typed.template_name, "Its name")->required()->type_name("NAME");
}

void add_export(CLI::App& app, Typed& typed) {
  add_template_name(app, typed);
  app.add_option("-o,--output", typed.file, "Where to write the pack (default: NAME.tar)")
      ->type_name("FILE");
}

void add_import(CLI::App& app, Typed& typed) {
  app.add_option("file", typed.file, "What `atoll template export` wrote")
      ->required()
      ->type_name("FILE");
  app.add_flag("-v,--verbose", typed.verbose, "Show the log");
}

void add_init(CLI::App& app, Typed& typed) {
  app.add_option("directory", typed.directory, "The folder to make")->required()->type_name("DIR");
}

void add_add(CLI::App& app, Typed& typed) {
  app.add_option("directory", typed.directory, "A folder with template.toml, image.erofs, digest")
      ->required()
      ->type_name("DIR");
}

Verbosity verbosity_of(const Typed& typed) {
  return typed.verbose ? Verbosity::kVerbose : Verbosity::kQuiet;
}

Result<Command> make_build(const Typed& typed, const CLI::App&) {
  using Build = BuildTemplateCommand;
  if (typed.all == !typed.directory.empty())
    return Error(Code::kInvalid, "name a folder or a template, or give --all");
  return Command(
      Build{.what = typed.all ? Build::What::kAll : Build::What::kNamed,
            .source = typed.directory,
            .freshness = typed.anew ? Build::Freshness::kAnew : Build::Freshness::kAsBuilt,
            .verbosity = verbosity_of(typed)});
}

Result<Command> make_template_list(const Typed&, const CLI::App&) {
  return Command(ListTemplatesCommand{});
}
Result<Command> make_template_show(const Typed& typed, const CLI::App&) {
  return Command(ShowTemplateCommand{typed.template_name});
}
Result<Command> make_template_remove(const Typed& typed, const CLI::App&) {
  return Command(RemoveTemplateCommand{typed.template_name});
}
Result<Command> make_export(const Typed& typed, const CLI::App&) {
  return Command(ExportTemplateCommand{typed.template_name, typed.file});
}
Result<Command> make_import(const Typed& typed, const CLI::App&) {
  return Command(ImportTemplateCommand{typed.file, verbosity_of(typed)});
}
Result<Command> make_init(const Typed& typed, const CLI::App&) {
  return Command(InitTemplateCommand{typed.directory});
}
Result<Command> make_add(const Typed& typed, const CLI::App&) {
  return Command(AddTemplateCommand{typed.directory});
}

constexpr CommandEntry kTemplateEntries[] = {
    {"template ls", "List the templates", "  atoll template ls", nullptr, make_template_list},
    {"template build", "Build a template from its folder, or one that comes with Atoll",
     "  atoll template build ./my-template\n"
     "  atoll template build node\n"
     "  atoll template build --all",
     add_build, make_build},
    {"template show", "Show one template", "  atoll template show python", add_template_name,
     make_template_show},
    {"template rm", "Remove a template of yours; sandboxes of it go on",
     "  atoll template rm my-template", add_template_name, make_template_remove},
    {"template export", "Write a template as a pack: its manifest and files",
     "  atoll template export my-template -o my-template.tar", add_export, make_export},
    {"template import", "Build a template from a pack", "  atoll template import my-template.tar",
     add_import, make_import},
    {"template init", "Write a commented example to begin with",
     "  atoll template init ./my-template", add_init, make_init},
    {"template add", "Install an image that was built elsewhere, for every tenant (root)",
     "  atoll template add build/images/python", add_add, make_add},
};

}  // namespace

CommandGroup template_entries() { return {"Templates", kTemplateEntries}; }

}  // namespace atl::cli
