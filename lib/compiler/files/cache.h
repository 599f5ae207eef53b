// The cache on disk: content-addressed entries that any process of the user shares.
//
// An entry is the file <cache directory>/<first two digits of the key>/<other digits>. Directories are created with mode 0700. An
// entry is written under a temporary name and then renamed, so that a reader sees all of it or nothing. It ends with its key and
// with a BLAKE3 hash of bytes and key. An entry that is damaged, or was copied from another key, is removed and not used.
// Only regular files of at most 256 MiB are read, never through links. Directories and files that belong to another user,
// or that the group or others may write to, are not used.
//
// No function fails: a directory that is missing, full or not writable only means that nothing is cached. POCL_CACHE_DIR is
// the directory; POCL_KERNEL_CACHE=0 disables the cache. Any thread, any number of processes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polder::compiler {

// The key, in hexadecimal digits, of a result that depends on `parts` alone and on the build of Polder.
[[nodiscard]] std::string cache_key(const std::vector<std::string_view>& parts);

[[nodiscard]] std::optional<std::string> load_cached(const std::string& key);
void store_cached(const std::string& key, std::string_view bytes);

// Creates the directory and its missing parents with mode 0700.
bool make_private_directory(const std::filesystem::path& directory);

}  // namespace polder::compiler
