// TemplateSetup: the commands of a template's `setup`, run as root in an ordinary sandbox of the
// image so far, without a network unless whoever ordered the build gives it one. What they leave
// behind is read out as a tar of the whole root, which goes the way of every other source.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "sandbox/sandboxes.h"
#include "sandbox/template_build.h"
#include "store/tar_entry.h"

namespace atl::sandbox {

// Told of the sandbox before anything is run in it; may give it a network.
using OnSetup = std::function<Task<Result<void>>(std::shared_ptr<Sandbox>)>;

class TemplateSetup {
 public:
  // The tar becomes a file without a name in `directory`.
  TemplateSetup(Sandboxes& sandboxes, std::shared_ptr<TemplateBuild> build, std::string directory)
      : sandboxes_(sandboxes), build_(std::move(build)), directory_(std::move(directory)) {}

  void set_on_setup(OnSetup call) { on_setup_ = std::move(call); }
  // Has the files of the pack put into the sandbox first: the image is not made of them.
  void set_files(Fd pack) { pack_ = std::move(pack); }

  // kInvalid with reason build_refused: a command failed.
  Task<Result<Fd>> run(Digest image, const store::TemplateManifest& manifest);

 private:
  Task<Result<Fd>> run_inside(std::shared_ptr<Sandbox> sandbox,
                              const store::TemplateManifest& manifest);
  Task<Result<void>> put_files(std::shared_ptr<Sandbox> sandbox, std::string folder);
  Task<Result<void>> run_command(std::shared_ptr<Sandbox> sandbox, std::string command);
  Task<Result<void>> read_directory(std::shared_ptr<Sandbox> sandbox, std::string name, int into);
  Task<Result<void>> read_file(std::shared_ptr<Sandbox> sandbox, store::TarEntry entry, int into);
  Task<Result<Fd>> read_root(std::shared_ptr<Sandbox> sandbox);

  Sandboxes& sandboxes_;
  std::shared_ptr<TemplateBuild> build_;
  std::string directory_;
  OnSetup on_setup_;
  Fd pack_;
};

}  // namespace atl::sandbox
