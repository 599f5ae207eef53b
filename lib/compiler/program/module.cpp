#include "module.h"

#include "byte_stream.h"
#include "targets/host/host.h"

#include <llvm/Support/BLAKE3.h>

namespace polder::compiler {
namespace {

constexpr std::string_view magic = "POLDER\x1a\x04";
constexpr size_t hash_bytes = 32;

std::string hash_of(std::string_view bytes) {
    const auto hash =
        llvm::BLAKE3::hash<hash_bytes>(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

// Everything that must be the same for a binary to be of use.
std::string compatibility() {
    return "abi " + std::to_string(kernel_abi_version) + " llvm " LLVM_VERSION_STRING " " + host().triple.str() + " " +
           host().cpu + " " + host().features;
}

void put(ByteWriter& out, const std::optional<std::array<uint64_t, 3>>& size) {
    out.put(size.has_value());
    for (const uint64_t extent : size.value_or(std::array<uint64_t, 3>{}))
        out.put(extent);
}

std::optional<std::array<uint64_t, 3>> get_size(ByteReader& in) {
    const bool is_there = in.get<bool>();
    std::array<uint64_t, 3> size{};
    for (uint64_t& extent : size)
        extent = in.get<uint64_t>();
    return is_there ? std::optional{size} : std::nullopt;
}

void put(ByteWriter& out, const KernelArgument& argument) {
    out.put(argument.kind);
    out.put(argument.offset);
    out.put(argument.size);
    out.put(argument.alignment);
    out.put(argument.access);
    out.put(argument.address_space);
    out.put(argument.image_access);
    out.put(std::string_view{argument.image_type});
    out.put(std::string_view{argument.type_name});
    out.put(std::string_view{argument.name});
    out.put(argument.is_const);
    out.put(argument.is_restrict);
    out.put(argument.is_volatile);
    out.put(argument.is_pipe);
}

KernelArgument get_argument(ByteReader& in) {
    KernelArgument argument;
    argument.kind = in.get<ArgumentKind>();
    argument.offset = in.get<uint32_t>();
    argument.size = in.get<uint32_t>();
    argument.alignment = in.get<uint32_t>();
    argument.access = in.get<Access>();
    argument.address_space = in.get<AddressSpace>();
    argument.image_access = in.get<KernelArgument::ImageAccess>();
    argument.image_type = in.get_string();
    argument.type_name = in.get_string();
    argument.name = in.get_string();
    argument.is_const = in.get<bool>();
    argument.is_restrict = in.get<bool>();
    argument.is_volatile = in.get<bool>();
    argument.is_pipe = in.get<bool>();
    return argument;
}

void put(ByteWriter& out, const KernelInfo& kernel) {
    out.put(std::string_view{kernel.name});
    out.put(uint64_t{kernel.arguments.size()});
    for (const KernelArgument& argument : kernel.arguments)
        put(out, argument);
    out.put(kernel.arguments_size);
    out.put(std::string_view{kernel.attributes});
    put(out, kernel.reqd_work_group_size);
    put(out, kernel.work_group_size_hint);
    out.put(kernel.has_argument_info);
    out.put(kernel.uses_indirect_pointers);
    out.put(kernel.uses_program_variables);
    out.put(kernel.sees_work_groups);
    out.put(kernel.uses_sub_groups);
    out.put(kernel.reqd_sub_group_size.value_or(0));
}

KernelInfo get_kernel(ByteReader& in) {
    KernelInfo kernel;
    kernel.name = in.get_string();
    for (uint64_t left = in.get_count(); left > 0 && in.ok(); --left)
        kernel.arguments.push_back(get_argument(in));
    kernel.arguments_size = in.get<uint32_t>();
    kernel.attributes = in.get_string();
    kernel.reqd_work_group_size = get_size(in);
    kernel.work_group_size_hint = get_size(in);
    kernel.has_argument_info = in.get<bool>();
    kernel.uses_indirect_pointers = in.get<bool>();
    kernel.uses_program_variables = in.get<bool>();
    kernel.sees_work_groups = in.get<bool>();
    kernel.uses_sub_groups = in.get<bool>();
    if (const auto size = in.get<uint32_t>(); size != 0)
        kernel.reqd_sub_group_size = size;
    return kernel;
}

void put(ByteWriter& out, const ProgramVariables& variables) {
    out.put(variables.alignment);
    out.put(std::string_view{reinterpret_cast<const char*>(variables.image.data()), variables.image.size()});
    out.put(uint64_t{variables.relocations.size()});
    for (const uint64_t at : variables.relocations)
        out.put(at);
}

ProgramVariables get_variables(ByteReader& in) {
    ProgramVariables variables;
    variables.alignment = in.get<uint64_t>();
    const std::string image = in.get_string();
    const auto* bytes = reinterpret_cast<const std::byte*>(image.data());
    variables.image.assign(bytes, bytes + image.size());
    for (uint64_t left = in.get_count(); left > 0 && in.ok(); --left)
        variables.relocations.push_back(in.get<uint64_t>());
    return variables;
}

void put(ByteWriter& out, const driver::SourceProgram& source) {
    out.put(uint64_t{source.units.size()});
    for (const driver::SourceUnit& unit : source.units) {
        out.put(unit.language);
        out.put(std::string_view{unit.text});
        out.put(std::string_view{unit.options});
        out.put(uint64_t{unit.headers.size()});
        for (const auto& [name, text] : unit.headers) {
            out.put(std::string_view{name});
            out.put(std::string_view{text});
        }
        out.put(uint64_t{unit.constants.size()});
        for (const auto& [id, value] : unit.constants) {
            out.put(id);
            out.put(std::string_view{value});
        }
    }
    out.put(std::string_view{source.link_options});
    out.put(source.is_build);
}

driver::SourceUnit get_source_unit(ByteReader& in) {
    driver::SourceUnit unit;
    unit.language = in.get<driver::SourceUnit::Language>();
    unit.text = in.get_string();
    unit.options = in.get_string();
    for (uint64_t left = in.get_count(); left > 0 && in.ok(); --left) {
        std::string name = in.get_string();
        unit.headers.push_back({std::move(name), in.get_string()});
    }
    for (uint64_t left = in.get_count(); left > 0 && in.ok(); --left) {
        const auto id = in.get<uint32_t>();
        unit.constants.push_back({id, in.get_string()});
    }
    return unit;
}

driver::SourceProgram get_source(ByteReader& in) {
    driver::SourceProgram source;
    for (uint64_t left = in.get_count(); left > 0 && in.ok(); --left)
        source.units.push_back(get_source_unit(in));
    source.link_options = in.get_string();
    source.is_build = in.get<bool>();
    return source;
}

// The body without its hash, when that is right.
std::optional<std::string_view> checked_body(std::span<const std::byte> bytes) {
    const std::string_view all{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    if (all.size() < magic.size() + hash_bytes || all.substr(0, magic.size()) != magic)
        return std::nullopt;
    const std::string_view body = all.substr(0, all.size() - hash_bytes);
    return hash_of(body) == all.substr(body.size()) ? std::optional{body.substr(magic.size())} : std::nullopt;
}

} // namespace

std::vector<std::byte> CompiledModule::serialize() const {
    ByteWriter out;
    out.put_raw(magic);
    out.put(std::string_view{compatibility()});
    out.put(parts_.kind);
    out.put(std::string_view{parts_.bitcode});
    out.put(uint64_t{parts_.kernels.size()});
    for (const KernelInfo& kernel : parts_.kernels)
        put(out, kernel);
    put(out, parts_.variables);
    out.put(parts_.options.is_optimized);
    put(out, parts_.source);
    out.put_raw(hash_of(out.bytes()));
    const auto* bytes = reinterpret_cast<const std::byte*>(out.bytes().data());
    return {bytes, bytes + out.bytes().size()};
}

Result<std::shared_ptr<const Module>> Module::deserialize(std::span<const std::byte> bytes) {
    const auto body = checked_body(bytes);
    if (!body)
        return fail(Status::invalid_binary, "not a Polder binary, or damaged");
    ByteReader in(*body);
    if (in.get_string() != compatibility())
        return fail(Status::invalid_binary, "made by another version or for another processor");
    CompiledModule::Parts parts;
    parts.kind = in.get<ModuleKind>();
    parts.bitcode = in.get_string();
    for (uint64_t left = in.get_count(); left > 0 && in.ok(); --left)
        parts.kernels.push_back(get_kernel(in));
    parts.variables = get_variables(in);
    parts.options.is_optimized = in.get<bool>();
    parts.source = get_source(in);
    if (!in.ok() || !in.at_end())
        return fail(Status::invalid_binary, "malformed");
    return std::make_shared<const CompiledModule>(std::move(parts));
}

} // namespace polder::compiler
