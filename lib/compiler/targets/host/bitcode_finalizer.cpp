#include "bitcode_finalizer.h"

#include "module/bitcode.h"

#include <base/options.h>

#include <cstdlib>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/FileUtilities.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler {
namespace {

std::string command_for(const std::string& file) {
    constexpr std::string_view place = "%(bc)";
    std::string command = options::bitcode_finalizer();
    for (size_t at = command.find(place); at != std::string::npos; at = command.find(place, at + file.size()))
        command.replace(at, place.size(), file);
    return command;
}

tl::unexpected<Error> failed(const std::string& why) {
    return fail(Status::out_of_resources, "POCL_BITCODE_FINALIZER: " + why);
}

} // namespace

Result<std::unique_ptr<llvm::Module>> run_bitcode_finalizer(std::unique_ptr<llvm::Module> module) {
    if (options::bitcode_finalizer().empty())
        return module;
    llvm::SmallString<128> path;
    int file = -1;
    if (const std::error_code error = llvm::sys::fs::createTemporaryFile("polder", "bc", file, path))
        return failed(error.message());
    const llvm::FileRemover remover(path);
    llvm::raw_fd_ostream stream(file, true);
    stream << write_bitcode(*module);
    stream.close();
    const std::string command = command_for(path.str().str());
    // The option is a command line. NOLINTNEXTLINE(bugprone-command-processor)
    if (const int status = std::system(command.c_str()); status != 0)
        return failed("`" + command + "` ended with status " + std::to_string(status));
    auto changed = llvm::MemoryBuffer::getFile(path, false, false);
    if (!changed)
        return failed(changed.getError().message());
    return read_bitcode(std::string_view{(*changed)->getBuffer()}, module->getContext(), BitcodeReading::whole);
}

} // namespace polder::compiler
