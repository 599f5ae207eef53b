#include "debug_source.h"

#include "cache.h"
#include "descriptor.h"
#include "file_size_signal.h"

#include <base/log.h>
#include <base/options.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/BLAKE3.h>

namespace polder::compiler {
namespace {

bool write_file(const std::string& path, const std::string& text) {
    const FileSizeSignalBlocked blocked;
    Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file)
        return false;
    const bool is_written = write_all(file.number(), text);
    return file.close_now() && is_written;
}

}  // namespace

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
    // Under another name first, so that a debugger sees all of it or nothing.
    static std::atomic<uint64_t> serial{0};
    const std::string temporary = path + "." + std::to_string(getpid()) + "." + std::to_string(serial++);
    if (!write_file(temporary, source) || std::rename(temporary.c_str(), path.c_str()) != 0) {
        POLDER_LOG(cache, "%s is not written: %s", path.c_str(), std::strerror(errno));
        unlink(temporary.c_str());
    }
}

} // namespace polder::compiler
