// Files are opened relative to directory descriptors whose owner and mode were checked, so that another process cannot exchange a
// directory between the check and the use. Writers never lock: the last rename wins, and all entries of one key are equal.
#include "cache.h"

#include "descriptor.h"
#include "file_size_signal.h"
#include "hash.h"
#include "machine/host.h"

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
#include <polder/kernel_abi.h>
#include <sys/stat.h>
#include <unistd.h>

namespace polder::compiler {
namespace {

namespace fs = std::filesystem;

constexpr off_t entry_bytes_max = 256 << 20;

// Identifies this build of Polder, because another build may generate other code from the same input.
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

// A user who may write to a file or directory decides which code runs in this process: only this user may.
bool is_ours(const struct stat& state) {
    return state.st_uid == geteuid() && (state.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Descriptor open_directory(int parent, const char* name, int flags) {
    Descriptor directory(openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
    struct stat state{};
    if (!directory || fstat(directory.number(), &state) != 0)
        return Descriptor{-1};
    if (!is_ours(state)) {
        POLDER_LOG(cache, "%s is not used: it belongs to another user, or others may write to it", name);
        return Descriptor{-1};
    }
    return directory;
}

// The directory and the name of the file for `key`; the file may not exist.
struct EntryPlace {
    Descriptor directory;
    std::string name;
};

enum class Missing : uint8_t { is_left, is_made };

EntryPlace place_of(const std::string& key, Missing missing) {
    const std::string folder = key.substr(0, 2);
    if (missing == Missing::is_made)
        make_private_directory(options::cache_directory());
    const Descriptor top = open_directory(AT_FDCWD, options::cache_directory().c_str(), 0);
    if (top && missing == Missing::is_made)
        mkdirat(top.number(), folder.c_str(), 0700);
    return {top ? open_directory(top.number(), folder.c_str(), O_NOFOLLOW) : Descriptor{-1}, key.substr(2)};
}

// An entry is the bytes, the key, and a hash of both.
std::string entry_end(const std::string& key, std::string_view bytes) {
    return key + hash_of(std::string{bytes} + key);
}

// Reads a file of at most `entry_bytes_max` to its end. Nothing else than a regular file is opened: a FIFO would wait for
// its writer, a device may have no end.
std::optional<std::string> read_file(const EntryPlace& place) {
    const Descriptor file(openat(place.directory.number(), place.name.c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat state{};
    if (!file || fstat(file.number(), &state) != 0)
        return std::nullopt;
    if (!S_ISREG(state.st_mode) || !is_ours(state) || state.st_size > entry_bytes_max)
        return std::nullopt;
    std::string bytes(static_cast<size_t>(state.st_size), '\0');
    for (size_t at = 0; at < bytes.size();) {
        const ssize_t read = pread(file.number(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
        if (read < 0 && errno == EINTR)
            continue;
        if (read <= 0)
            return std::nullopt;
        at += static_cast<size_t>(read);
    }
    return bytes;
}

bool write_file(const EntryPlace& place, const std::string& name, const std::string& key, std::string_view bytes) {
    const FileSizeSignalBlocked blocked;
    Descriptor file(
        openat(place.directory.number(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file)
        return false;
    const bool is_written = write_all(file.number(), bytes) && write_all(file.number(), entry_end(key, bytes));
    return file.close_now() && is_written;
}

}  // namespace

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
    const EntryPlace place = place_of(key, Missing::is_left);
    if (!place.directory)
        return std::nullopt;
    auto all = read_file(place);
    if (!all)
        return std::nullopt;
    const size_t end_bytes = key.size() + hash_bytes;
    const size_t size = all->size() < end_bytes ? 0 : all->size() - end_bytes;
    if (all->size() < end_bytes || all->substr(size) != entry_end(key, std::string_view{*all}.substr(0, size))) {
        POLDER_LOG(cache, "%s is damaged", key.c_str());
        unlinkat(place.directory.number(), place.name.c_str(), 0);
        return std::nullopt;
    }
    all->resize(size);
    return all;
}

void store_cached(const std::string& key, std::string_view bytes) {
    static std::atomic<uint64_t> serial{0};
    if (!is_enabled() || bytes.size() > static_cast<size_t>(entry_bytes_max) / 2)
        return;
    const EntryPlace place = place_of(key, Missing::is_made);
    const std::string temporary = place.name + "." + std::to_string(getpid()) + "." + std::to_string(serial++);
    if (!place.directory)
        return;
    const int directory = place.directory.number();
    if (!write_file(place, temporary, key, bytes) ||
        renameat(directory, temporary.c_str(), directory, place.name.c_str()) != 0) {
        POLDER_LOG(cache, "%s is not written: %s", key.c_str(), std::strerror(errno));
        unlinkat(directory, temporary.c_str(), 0);
    }
}

}  // namespace polder::compiler
