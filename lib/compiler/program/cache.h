// The cache on disk: content-addressed entries that any process of the user shares.
//
// <cache directory>/<first two digits>/<rest of the key>. A directory that we make is private to the user (0700). An
// entry is written to a temporary name and renamed, so that a reader sees all of it or nothing; it ends with its key and
// with a BLAKE3 hash of bytes and key. An entry that is damaged, or lies under another key, is removed and counts as absent.
// Only regular files of at most 256 MiB are read, never through links. Directories and files that belong to another user,
// or that the group or others may write to, are not used. Nothing here fails: a directory that is missing, full or not
// writable only means that there is no cache.
//
// POCL_CACHE_DIR says where, POCL_KERNEL_CACHE=0 switches it off. Any thread, any number of processes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polder::compiler {

// A name for what is made from these parts, in hexadecimal. Polder's own build is part of every key.
[[nodiscard]] std::string cache_key(const std::vector<std::string_view>& parts);

[[nodiscard]] std::optional<std::string> load_cached(const std::string& key);
void store_cached(const std::string& key, std::string_view bytes);

// Makes the directory and its parents; those that are made are the user's alone.
bool make_private_directory(const std::filesystem::path& directory);

}  // namespace polder::compiler
