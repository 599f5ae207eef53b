#include "debug_source.h"

#include "cache.h"
#include "file_size_signal.h"

#include <base/log.h>
#include <base/options.h>

#include <filesystem>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/BLAKE3.h>
#include <llvm/Support/FileUtilities.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler {

std::string debug_source_directory(const std::string& source) {
    if (options::cache_directory().empty())
        return {};
    const auto hash =
        llvm::BLAKE3::hash<16>(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(source.data()), source.size()));
    return options::cache_directory() + "/sources/" + llvm::toHex(hash, true);
}

void keep_debug_source(const std::string& source) {
    const std::string directory = debug_source_directory(source);
    if (directory.empty())
        return;
    const std::string path = directory + "/" + source_name;
    std::error_code error;
    if (std::filesystem::exists(path, error))
        return;
    if (!make_private_directory(directory)) {
        POLDER_LOG(cache, "%s cannot be made", directory.c_str());
        return;
    }
    const FileSizeSignalBlocked blocked;
    if (llvm::Error failure = llvm::writeToOutput(path, [&source](llvm::raw_ostream& file) {
            file << source;
            return llvm::Error::success();
        }))
        POLDER_LOG(cache, "%s is not written: %s", path.c_str(), llvm::toString(std::move(failure)).c_str());
}

} // namespace polder::compiler
