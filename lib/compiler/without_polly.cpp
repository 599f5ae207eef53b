// Clang's code generation names Polly's registration, which Debian's archives do not contain: it registers nothing here.
// Linked into libpolder.so alone, and only with the archives.
#include <llvm/Config/llvm-config.h>
#include <llvm/Plugins/PassPlugin.h>

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "none", LLVM_VERSION_STRING, [](llvm::PassBuilder&) {}, nullptr};
}
