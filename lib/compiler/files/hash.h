// The hash by which binaries and cache entries are recognized as intact. Any thread.
#pragma once

#include <cstdint>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/BLAKE3.h>
#include <string>
#include <string_view>

namespace polder::compiler {

inline constexpr size_t hash_bytes = 32;

inline std::string hash_of(std::string_view bytes) {
    const auto hash =
        llvm::BLAKE3::hash<hash_bytes>(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

}  // namespace polder::compiler
