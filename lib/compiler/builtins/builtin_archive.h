// The library of built-ins on disk: many small bitcode modules and a sorted index of the symbols that they
// define, so that a compilation reads only what it needs. (Reading libclc's single module of ten thousand functions
// takes 20 ms even when function bodies are read lazily. A look-up here takes microseconds.)
//
// Format (little-endian): header; entries sorted by name; offsets of the modules; names; the modules ("blobs").
//
// A BuiltinArchive is immutable and maps the file; any thread. Errors: invalid_value when the file is not
// such an archive or is damaged (every offset is checked when it is used).
#pragma once

#include <array>
#include <cstdint>
#include <llvm/Support/MemoryBuffer.h>
#include <map>
#include <memory>
#include <optional>
#include <polder/result.h>
#include <string>
#include <string_view>
#include <vector>

namespace polder::compiler {

using ContentHash = std::array<uint8_t, 32>;

class BuiltinArchive {
public:
    [[nodiscard]] static Result<std::unique_ptr<BuiltinArchive>> open(const std::string& path);

    // The number of the blob that defines `name`.
    [[nodiscard]] std::optional<uint32_t> find(std::string_view name) const;
    [[nodiscard]] std::optional<std::string_view> blob(uint32_t number) const;
    [[nodiscard]] const ContentHash& hash() const;
    [[nodiscard]] size_t symbol_count() const;
    [[nodiscard]] std::string_view symbol(size_t index) const;

private:
    explicit BuiltinArchive(std::unique_ptr<llvm::MemoryBuffer> file) : file_(std::move(file)) {}

    std::unique_ptr<llvm::MemoryBuffer> file_;
};

// Collects blobs and writes the archive (build time).
class BuiltinArchiveWriter {
public:
    void add(std::string bitcode, const std::vector<std::string>& symbols);
    [[nodiscard]] std::string finish() const;

private:
    std::vector<std::string> blobs_;
    std::map<std::string, uint32_t> symbols_;
};

} // namespace polder::compiler
