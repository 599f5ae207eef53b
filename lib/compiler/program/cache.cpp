#include "cache.h"

#include "file_size_signal.h"
#include "targets/host/host.h"

#include <base/log.h>
#include <base/options.h>

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/BLAKE3.h>
#include <llvm/Support/MemoryBuffer.h>
#include <polder/kernel_abi.h>
#include <sys/stat.h>
#include <unistd.h>

namespace polder::compiler {
namespace {

namespace fs = std::filesystem;

constexpr size_t hash_bytes = 32;

std::string hash_of(std::string_view bytes) {
    const auto hash =
        llvm::BLAKE3::hash<hash_bytes>(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

// Which build of Polder this is: another one may make other code from the same input.
std::string own_build() {
    Dl_info info{};
    struct stat file{};
    if (dladdr(reinterpret_cast<const void*>(&own_build), &info) == 0 || stat(info.dli_fname, &file) != 0)
        return "unknown";
    return std::to_string(file.st_size) + "/" + std::to_string(file.st_mtim.tv_sec) + "/" +
           std::to_string(file.st_mtim.tv_nsec);
}

const std::string& environment_key() {
    static const auto* const instance =
        new std::string(own_build() + "|abi " + std::to_string(kernel_abi_version) + "|llvm " LLVM_VERSION_STRING "|" +
                        host().triple.str() + "|" + host().cpu + "|" + host().features);
    return *instance;
}

bool is_enabled() { return options::kernel_cache() && !options::cache_directory().empty(); }

fs::path path_of(const std::string& key) {
    return fs::path{options::cache_directory()} / key.substr(0, 2) / key.substr(2);
}

bool write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
}

bool write_file(const fs::path& path, std::string_view bytes) {
    const FileSizeSignalBlocked blocked;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    const bool is_written = write_all(file, bytes) && write_all(file, hash_of(bytes));
    return (close(file) == 0) && is_written;
}

} // namespace

bool make_private_directory(const fs::path& directory) {
    std::error_code error;
    if (fs::is_directory(directory, error))
        return true;
    if (directory.has_parent_path() && directory.parent_path() != directory &&
        !make_private_directory(directory.parent_path()))
        return false;
    return mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string cache_key(const std::vector<std::string_view>& parts) {
    llvm::BLAKE3 hasher;
    const auto add = [&hasher](std::string_view part) {
        const uint64_t size = part.size();
        hasher.update(llvm::StringRef(reinterpret_cast<const char*>(&size), sizeof size));
        hasher.update(llvm::StringRef(part.data(), part.size()));
    };
    add(environment_key());
    for (const std::string_view part : parts)
        add(part);
    return llvm::toHex(hasher.final<hash_bytes>(), true);
}

std::optional<std::string> load_cached(const std::string& key) {
    if (!is_enabled())
        return std::nullopt;
    auto file = llvm::MemoryBuffer::getFile(path_of(key).string(), false, false);
    if (!file)
        return std::nullopt;
    const std::string_view all{(*file)->getBuffer()};
    if (all.size() < hash_bytes ||
        hash_of(all.substr(0, all.size() - hash_bytes)) != all.substr(all.size() - hash_bytes)) {
        POLDER_LOG(cache, "%s is damaged", path_of(key).c_str());
        unlink(path_of(key).c_str());
        return std::nullopt;
    }
    return std::string{all.substr(0, all.size() - hash_bytes)};
}

void store_cached(const std::string& key, std::string_view bytes) {
    static std::atomic<uint64_t> serial{0};
    if (!is_enabled())
        return;
    const fs::path path = path_of(key);
    const fs::path temporary = path.string() + "." + std::to_string(getpid()) + "." + std::to_string(serial++);
    if (!make_private_directory(path.parent_path()) || !write_file(temporary, bytes) ||
        rename(temporary.c_str(), path.c_str()) != 0) {
        POLDER_LOG(cache, "%s is not written: %s", path.c_str(), std::strerror(errno));
        unlink(temporary.c_str());
    }
}

} // namespace polder::compiler
