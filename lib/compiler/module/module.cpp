// Serialises and deserialises CompiledModule. `fields_of` lists the fields of each structure once, for both directions.
#include "module.h"

#include "byte_stream.h"
#include "files/hash.h"
#include "machine/host.h"

#include <llvm/Support/BLAKE3.h>
#include <tuple>

namespace polder::driver {

template <compiler::Same<SourceUnit::Header> T>
auto fields_of(T& header) {
    return std::tie(header.name, header.text);
}

template <compiler::Same<SourceUnit::Constant> T>
auto fields_of(T& constant) {
    return std::tie(constant.id, constant.value);
}

template <compiler::Same<SourceUnit> T>
auto fields_of(T& unit) {
    return std::tie(unit.language, unit.text, unit.options, unit.headers, unit.constants);
}

// The id is of this process alone.
template <compiler::Same<SourceProgram> T>
auto fields_of(T& program) {
    return std::tie(program.units, program.link_options, program.is_build);
}

}  // namespace polder::driver

namespace polder::compiler {

template <Same<KernelArgument> T>
auto fields_of(T& argument) {
    return std::tie(argument.kind, argument.offset, argument.size, argument.alignment, argument.access,
                    argument.bytes_max, argument.address_space, argument.image_access, argument.image_type,
                    argument.type_name, argument.name, argument.is_const, argument.is_restrict, argument.is_volatile,
                    argument.is_pipe);
}

template <Same<KernelInfo> T>
auto fields_of(T& kernel) {
    return std::tie(kernel.name, kernel.arguments, kernel.arguments_size, kernel.attributes,
                    kernel.reqd_work_group_size, kernel.work_group_size_hint, kernel.has_argument_info,
                    kernel.uses_indirect_pointers, kernel.uses_program_variables, kernel.sees_work_groups,
                    kernel.uses_sub_groups, kernel.reqd_sub_group_size, kernel.enqueues_blocks,
                    kernel.private_bytes_over_barriers, kernel.quick_work, kernel.quick_factors);
}

template <Same<ProgramVariables> T>
auto fields_of(T& variables) {
    return std::tie(variables.alignment, variables.image, variables.relocations);
}

template <Same<CompiledModule::Parts> T>
auto fields_of(T& parts) {
    return std::tie(parts.kind, parts.bitcode, parts.kernels, parts.variables, parts.options.is_optimized,
                    parts.options.flushes_subnormals, parts.source, parts.blocks);
}

namespace {

constexpr std::string_view magic = "POLDER\x1a\x09";

// The properties that a binary must share with this process: ABI version, LLVM version, and processor.
std::string compatibility() {
    return "abi " + std::to_string(kernel_abi_version) + " llvm " LLVM_VERSION_STRING " " + host().triple.str() + " " +
           host().cpu + " " + host().features;
}

// The bytes between magic number and hash, when both are right.
std::optional<std::string_view> checked_body(std::span<const std::byte> bytes) {
    const std::string_view all{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    if (all.size() < magic.size() + hash_bytes || all.substr(0, magic.size()) != magic)
        return std::nullopt;
    const std::string_view body = all.substr(0, all.size() - hash_bytes);
    return hash_of(body) == all.substr(body.size()) ? std::optional{body.substr(magic.size())} : std::nullopt;
}

}  // namespace

std::vector<std::byte> CompiledModule::serialize() const {
    ByteWriter out;
    out.put_raw(magic);
    out.put(std::string_view{compatibility()});
    out.put(parts_);
    out.put_raw(hash_of(out.bytes()));
    const auto* bytes = reinterpret_cast<const std::byte*>(out.bytes().data());
    return {bytes, bytes + out.bytes().size()};
}

Result<std::shared_ptr<const Module>> Module::deserialize(std::span<const std::byte> bytes) {
    const auto body = checked_body(bytes);
    if (!body)
        return fail(Status::invalid_binary, "not a Polder binary, or damaged");
    ByteReader in(*body);
    if (in.get<std::string>() != compatibility())
        return fail(Status::invalid_binary, "made by another version or for another processor");
    auto parts = in.get<CompiledModule::Parts>();
    if (!in.ok() || !in.at_end())
        return fail(Status::invalid_binary, "malformed");
    return std::make_shared<const CompiledModule>(std::move(parts));
}

}  // namespace polder::compiler
