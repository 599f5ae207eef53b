// The archive is mapped and never copied. A look-up is a binary search in the sorted entries. Each offset is checked against the
// file's size when it is used; a damaged archive gives empty results.
#include "builtin_archive.h"

#include <cstring>
#include <llvm/Support/BLAKE3.h>

namespace polder::compiler {
namespace {

struct Header {
    char magic[8];
    uint32_t version;
    uint32_t entries;
    uint32_t blobs;
    uint32_t reserved;
    ContentHash hash;  // of all bytes after the header
};
struct Entry {
    uint32_t name_offset;  // in the file
    uint32_t name_size;
    uint32_t blob;
    uint32_t reserved;
};
struct Place {
    uint64_t offset;  // in the file
    uint64_t size;
};

constexpr char magic[8] = {'P', 'O', 'L', 'D', 'E', 'R', 'B', 'A'};
constexpr uint32_t version = 1;

const Header& header_of(llvm::StringRef file) { return *reinterpret_cast<const Header*>(file.data()); }
const Entry* entries_of(llvm::StringRef file) { return reinterpret_cast<const Entry*>(file.data() + sizeof(Header)); }
const Place* places_of(llvm::StringRef file) {
    return reinterpret_cast<const Place*>(entries_of(file) + header_of(file).entries);
}

bool is_archive(llvm::StringRef file) {
    if (file.size() < sizeof(Header))
        return false;
    const Header& header = header_of(file);
    return std::memcmp(header.magic, magic, sizeof magic) == 0 && header.version == version &&
           file.size() >=
               sizeof(Header) + uint64_t{header.entries} * sizeof(Entry) + uint64_t{header.blobs} * sizeof(Place);
}

std::string_view part(llvm::StringRef file, uint64_t offset, uint64_t size) {
    if (offset > file.size() || size > file.size() - offset)
        return {};
    return {file.data() + offset, size};
}

template <class T>
void append(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

Result<std::unique_ptr<BuiltinArchive>> BuiltinArchive::open(const std::string& path) {
    auto file = llvm::MemoryBuffer::getFile(path, false, false);
    if (!file)
        return fail(Status::invalid_value, path + ": " + file.getError().message());
    if (!is_archive((*file)->getBuffer()))
        return fail(Status::invalid_value, path + ": damaged, or of another version of Polder");
    return std::unique_ptr<BuiltinArchive>(new BuiltinArchive(std::move(*file)));
}

std::string_view BuiltinArchive::symbol(size_t index) const {
    const Entry& entry = entries_of(file_->getBuffer())[index];
    return part(file_->getBuffer(), entry.name_offset, entry.name_size);
}

size_t BuiltinArchive::symbol_count() const { return header_of(file_->getBuffer()).entries; }

std::optional<uint32_t> BuiltinArchive::find(std::string_view name) const {
    size_t low = 0;
    size_t high = symbol_count();
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (symbol(middle) < name)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == symbol_count() || symbol(low) != name)
        return std::nullopt;
    return entries_of(file_->getBuffer())[low].blob;
}

std::optional<std::string_view> BuiltinArchive::blob(uint32_t number) const {
    if (number >= header_of(file_->getBuffer()).blobs)
        return std::nullopt;
    const Place& place = places_of(file_->getBuffer())[number];
    const std::string_view bytes = part(file_->getBuffer(), place.offset, place.size);
    return bytes.empty() ? std::nullopt : std::optional{bytes};
}

const ContentHash& BuiltinArchive::hash() const { return header_of(file_->getBuffer()).hash; }

void BuiltinArchiveWriter::add(std::string bitcode, const std::vector<std::string>& symbols) {
    for (const std::string& symbol : symbols)
        symbols_[symbol] = static_cast<uint32_t>(blobs_.size());
    blobs_.push_back(std::move(bitcode));
}

std::string BuiltinArchiveWriter::finish() const {
    const uint64_t names_at = sizeof(Header) + symbols_.size() * sizeof(Entry) + blobs_.size() * sizeof(Place);
    std::string entries;
    std::string names;
    for (const auto& [name, blob] : symbols_) {
        append(entries,
               Entry{static_cast<uint32_t>(names_at + names.size()), static_cast<uint32_t>(name.size()), blob, 0});
        names += name;
    }
    // Bitcode readers want words that are aligned in memory.
    const auto padding = [](uint64_t size) { return std::string((8 - size % 8) % 8, '\0'); };
    names += padding(names_at + names.size());
    std::string places;
    std::string blobs;
    for (const std::string& blob : blobs_) {
        append(places, Place{names_at + names.size() + blobs.size(), blob.size()});
        blobs += blob + padding(blob.size());
    }
    const std::string body = entries + places + names + blobs;
    Header header{{}, version, static_cast<uint32_t>(symbols_.size()), static_cast<uint32_t>(blobs_.size()), 0, {}};
    std::memcpy(header.magic, magic, sizeof magic);
    header.hash = llvm::BLAKE3::hash<32>(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(body.data()), body.size()));
    std::string file;
    append(file, header);
    return file + body;
}

}  // namespace polder::compiler
