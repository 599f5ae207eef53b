// The binary of a program, little-endian:
//   0  8  "POLDER\r\n"
//   8  4  version of this format
//  12  4  1 when launches may have work-groups of different sizes
//  16 16  build_id() of the Polder that made it, padded with zeros
//  32  8  length of the options
//  40  8  length of the module
//  48     options, module (compiler::Module::serialize)
//  end 8  FNV-1a hash of all bytes before it
#include <base/build_id.h>
#include <runtime/program.h>

#include <array>
#include <cstring>

namespace polder::runtime {
namespace {

constexpr char magic[8] = {'P', 'O', 'L', 'D', 'E', 'R', '\r', '\n'};
constexpr uint32_t form_version = 2;

struct Header {
    char magic[8];
    uint32_t version;
    uint32_t work_groups;
    char build[16];
    uint64_t options_bytes;
    uint64_t module_bytes;
};
static_assert(sizeof(Header) == 48);

using BuildField = std::array<char, 16>;
BuildField this_build() {
    BuildField field{};
    build_id().copy(field.data(), field.size());
    return field;
}

uint64_t checksum(std::span<const std::byte> bytes) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const std::byte byte : bytes)
        hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
    return hash;
}

void append(std::vector<std::byte>& bytes, const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
}

} // namespace

std::vector<std::byte> to_binary(const BuiltModule& built) {
    const std::vector<std::byte> module = built.module->serialize();
    Header header{{}, form_version, static_cast<uint32_t>(built.work_groups), {}, built.options.size(), module.size()};
    std::memcpy(header.magic, magic, sizeof magic);
    std::memcpy(header.build, this_build().data(), sizeof header.build);
    std::vector<std::byte> bytes;
    bytes.reserve(sizeof header + built.options.size() + module.size() + sizeof(uint64_t));
    append(bytes, &header, sizeof header);
    append(bytes, built.options.data(), built.options.size());
    append(bytes, module.data(), module.size());
    const uint64_t sum = checksum(bytes);
    append(bytes, &sum, sizeof sum);
    return bytes;
}

Result<BuiltModule> from_binary(std::span<const std::byte> bytes) {
    Header header;
    uint64_t sum = 0;
    if (bytes.size() < sizeof header + sizeof sum)
        return fail(Status::invalid_binary, "the binary is too short");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::memcmp(header.magic, magic, sizeof magic) != 0)
        return fail(Status::invalid_binary, "the binary is not one of Polder");
    if (header.version != form_version || header.work_groups > 1)
        return fail(Status::invalid_binary, "the binary is of another version of Polder");
    if (std::memcmp(header.build, this_build().data(), sizeof header.build) != 0)
        return fail(Status::invalid_binary, "the binary is of another build of Polder");
    const uint64_t body_bytes = bytes.size() - sizeof header - sizeof sum;
    if (header.options_bytes > body_bytes || header.module_bytes != body_bytes - header.options_bytes)
        return fail(Status::invalid_binary, "the binary is cut off");
    std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
    if (sum != checksum(bytes.first(bytes.size() - sizeof sum)))
        return fail(Status::invalid_binary, "the binary is damaged");
    const std::span<const std::byte> body = bytes.subspan(sizeof header, body_bytes);
    POLDER_ASSIGN(module, compiler::Module::deserialize(body.subspan(header.options_bytes)));
    return BuiltModule{std::move(module), std::string(reinterpret_cast<const char*>(body.data()), header.options_bytes),
                       static_cast<BuiltModule::WorkGroups>(header.work_groups)};
}

} // namespace polder::runtime
