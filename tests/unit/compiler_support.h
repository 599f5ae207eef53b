// Compiles, links and runs small OpenCL C programs for the compiler's tests, without runtime or driver.
#pragma once

#include <compiler/compiler.h>

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::test {

inline Target target() {
    Target target;
    target.code.local_memory_bytes = 1 << 20;
    target.extensions = {"cl_khr_fp64", "cl_khr_byte_addressable_store", "cl_khr_global_int32_base_atomics",
                         "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"};
    target.features = {"__opencl_c_fp64",
                       "__opencl_c_int64",
                       "__opencl_c_generic_address_space",
                       "__opencl_c_atomic_order_acq_rel",
                       "__opencl_c_atomic_order_seq_cst",
                       "__opencl_c_atomic_scope_device",
                       "__opencl_c_program_scope_global_variables",
                       "__opencl_c_subgroups",
                       "__opencl_c_work_group_collective_functions"};
    return target;
}

// What a build returns: the module, or the status, and the log in any case.
struct Outcome {
    std::shared_ptr<const Module> module;
    Status status = Status::success;
    std::string log;
};

inline Outcome outcome_of(Result<std::shared_ptr<const Module>> result, std::string log) {
    if (!result)
        return {nullptr, result.error().status(), std::move(log)};
    return {*result, Status::success, std::move(log)};
}

inline Outcome compile_object(const std::string& source, const std::string& options = "",
                              std::vector<NamedSource> headers = {}) {
    CompileInput input{source, std::move(headers), options, target(), false};
    std::string log;
    auto result = compile(input, log);
    return outcome_of(std::move(result), std::move(log));
}

inline Outcome link_objects(std::vector<std::shared_ptr<const Module>> modules, const std::string& options = "") {
    LinkInput input{std::move(modules), options, target(), false};
    std::string log;
    auto result = link(input, log);
    return outcome_of(std::move(result), std::move(log));
}

// Compiles and links, as clBuildProgram does.
inline Outcome build(const std::string& source, const std::string& options = "") {
    std::string log;
    auto object = compile(CompileInput{source, {}, options, target(), true}, log);
    if (!object)
        return {nullptr, object.error().status(), log};
    auto program = link(LinkInput{{*object}, options, target(), true}, log);
    return outcome_of(std::move(program), std::move(log));
}

inline const KernelInfo& kernel_of(const Outcome& built, std::string_view name) {
    for (const KernelInfo& kernel : built.module->kernels())
        if (kernel.name == name)
            return kernel;
    ADD_FAILURE() << "no kernel " << name;
    return built.module->kernels().front();
}

// One launch of a one-dimensional range in work-groups of `local_size`.
class Launch {
public:
    Launch(const Outcome& built, std::string_view kernel)
        : info_(kernel_of(built, kernel)), arguments_(info_.arguments_size) {
        auto opened = Executable::open(built.module, target());
        EXPECT_TRUE(opened.has_value());
        executable_ = *opened;
    }

    template <class T>
    Launch& set(size_t index, const T& value) {
        EXPECT_EQ(sizeof value, info_.arguments[index].size);
        std::memcpy(arguments_.data() + info_.arguments[index].offset, &value, sizeof value);
        return *this;
    }

    // What run() executes.
    Launch& use(const CodeVersion& version) {
        version_ = version;
        return *this;
    }
    [[nodiscard]] Executable& executable() { return *executable_; }

    void run(uint64_t global_size, uint64_t local_size, std::byte* program_variables = nullptr) {
        const auto code = executable_->code(info_.name, version_);
        ASSERT_TRUE(code.has_value()) << code.error().detail();
        const auto& compiled = std::get<driver::HostCode>(**code);
        LaunchContext context{};
        for (int d = 0; d < 3; ++d)
            context.global_size[d] = context.local_size[d] = context.num_groups[d] = 1;
        context.global_size[0] = global_size;
        context.local_size[0] = local_size;
        context.num_groups[0] = (global_size + local_size - 1) / local_size;
        context.work_dim = 1;
        context.program_variables = program_variables;
        context.print = [](void* user, const char* text, size_t size) {
            static_cast<Launch*>(user)->printed_.append(text, size);
        };
        context.print_user = this;
        struct alignas(128) Line {
            std::byte bytes[128];
        };
        std::vector<Line> local(compiled.local_bytes / 128 + 64);
        std::vector<Line> scratch(compiled.scratch_bytes_per_work_item * local_size / 128 + 64);
        for (uint64_t group = 0; group < context.num_groups[0]; ++group) {
            const uint64_t id[3] = {group, 0, 0};
            compiled.function(arguments_.data(), &context, id, local[0].bytes, scratch[0].bytes);
        }
    }

    [[nodiscard]] const std::string& printed() const { return printed_; }

private:
    const KernelInfo& info_;
    std::vector<std::byte> arguments_;
    std::shared_ptr<Executable> executable_;
    CodeVersion version_;
    std::string printed_;
};

} // namespace polder::compiler::test
