// The binary of a program, little-endian:
//   0  8  "POLDER\r\n"
//   8  4  version of this format
//  12  4  1 when launches may have work-groups of different sizes
//  16 16  build_id() of the Polder that made it, padded with zeros
//  32  8  length of the options
//  40  8  length of the module
//  48  8  length of the machine code
//  56     options, module (compiler::Module::serialize), machine code of the device's driver (polder/program_binaries.h)
//  end 8  FNV-1a hash of all bytes before it
#include <base/build_id.h>
#include <compiler/machine_code.h>
#include <runtime/program.h>

#include <array>
#include <cstring>

namespace polder::runtime {
namespace {

constexpr char magic[8] = {'P', 'O', 'L', 'D', 'E', 'R', '\r', '\n'};
constexpr uint32_t form_version = 3;

struct Header {
    char magic[8];
    uint32_t version;
    uint32_t work_groups;
    char build[16];
    uint64_t options_bytes;
    uint64_t module_bytes;
    uint64_t machine_code_bytes;
};
static_assert(sizeof(Header) == 56);

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

bool is_of_polder(std::span<const std::byte> bytes) {
    return bytes.size() >= sizeof magic && std::memcmp(bytes.data(), magic, sizeof magic) == 0;
}

// Launches may have work-groups of different sizes if the implementation allows it: it does not say how the program was built.
Result<BuiltModule> from_implementation(std::span<const std::byte> bytes, driver::ProgramBinaries& binaries) {
    POLDER_ASSIGN(read, binaries.read(bytes));
    return BuiltModule{compiler::make_module(read.kernels), "", BuiltModule::WorkGroups::any,
                       std::move(read.machine_code)};
}

std::string machine_code_of(const DeviceBuild& build, Device& device) {
    driver::ProgramBinaries* const binaries = device.driver().program_binaries();
    if (!binaries || !build.code || build.code->module().kernels().empty())
        return build.built->machine_code;
    const Result<const LoadedCode*> code = build.code->kernel(build.code->module().kernels().front());
    return code ? binaries->machine_code_of(*(*code)->loaded) : std::string{};
}

}  // namespace

std::vector<std::byte> to_binary(const DeviceBuild& build, Device& device) {
    const BuiltModule& built = *build.built;
    const std::vector<std::byte> module = built.module->serialize();
    const std::string machine_code = machine_code_of(build, device);
    Header header{{},
                  form_version,
                  static_cast<uint32_t>(built.work_groups),
                  {},
                  built.options.size(),
                  module.size(),
                  machine_code.size()};
    std::memcpy(header.magic, magic, sizeof magic);
    std::memcpy(header.build, this_build().data(), sizeof header.build);
    std::vector<std::byte> bytes;
    bytes.reserve(sizeof header + built.options.size() + module.size() + machine_code.size() + sizeof(uint64_t));
    append(bytes, &header, sizeof header);
    append(bytes, built.options.data(), built.options.size());
    append(bytes, module.data(), module.size());
    append(bytes, machine_code.data(), machine_code.size());
    const uint64_t sum = checksum(bytes);
    append(bytes, &sum, sizeof sum);
    return bytes;
}

Result<BuiltModule> from_binary(std::span<const std::byte> bytes, Device& device) {
    if (driver::ProgramBinaries* const others = device.driver().program_binaries(); others && !is_of_polder(bytes))
        return from_implementation(bytes, *others);
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
    if (header.options_bytes > body_bytes || header.module_bytes > body_bytes - header.options_bytes ||
        header.machine_code_bytes != body_bytes - header.options_bytes - header.module_bytes)
        return fail(Status::invalid_binary, "the binary is cut off");
    std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
    if (sum != checksum(bytes.first(bytes.size() - sizeof sum)))
        return fail(Status::invalid_binary, "the binary is damaged");
    const std::span<const std::byte> body = bytes.subspan(sizeof header, body_bytes);
    const auto text_of = [](std::span<const std::byte> part) {
        return std::string(reinterpret_cast<const char*>(part.data()), part.size());
    };
    POLDER_ASSIGN(module, compiler::Module::deserialize(body.subspan(header.options_bytes, header.module_bytes)));
    return BuiltModule{std::move(module), text_of(body.first(header.options_bytes)),
                       static_cast<BuiltModule::WorkGroups>(header.work_groups),
                       text_of(body.last(header.machine_code_bytes))};
}

}  // namespace polder::runtime
