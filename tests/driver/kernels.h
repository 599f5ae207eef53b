// Work-group functions written by hand, as the compiler would emit them.
#pragma once

#include <cstring>
#include <polder/driver.h>

namespace polder::conformance {

template <class Arguments>
Arguments arguments_of(const std::byte* bytes) {
    Arguments arguments;
    std::memcpy(&arguments, bytes, sizeof arguments);
    return arguments;
}
template <class Arguments>
std::span<const std::byte> packed(const Arguments& arguments) {
    return std::as_bytes(std::span{&arguments, 1});
}

// Calls body(global id, local id) for every work-item of a group.
template <class Body>
void for_each_item(const LaunchContext& context, const uint64_t* group, Body&& body) {
    uint64_t end[3];
    for (int d = 0; d < 3; ++d)
        end[d] = std::min(context.local_size[d], context.global_size[d] - group[d] * context.local_size[d]);
    for (uint64_t z = 0; z < end[2]; ++z)
        for (uint64_t y = 0; y < end[1]; ++y)
            for (uint64_t x = 0; x < end[0]; ++x) {
                const uint64_t local[3] = {x, y, z};
                uint64_t global[3];
                for (int d = 0; d < 3; ++d)
                    global[d] = context.global_offset[d] + group[d] * context.local_size[d] + local[d];
                body(global, local);
            }
}

// out[i] += 1 for each work-item, where i counts the items of the global range row by row.
struct CountVisits {
    uint64_t out;

    static void run(const std::byte* args, const LaunchContext* context, const uint64_t* group, std::byte*,
                    std::byte*) {
        auto* const out = reinterpret_cast<uint32_t*>(arguments_of<CountVisits>(args).out);
        for_each_item(*context, group, [&](const uint64_t* global, const uint64_t*) {
            uint64_t id[3];
            for (int d = 0; d < 3; ++d)
                id[d] = global[d] - context->global_offset[d];
            out[(id[2] * context->global_size[1] + id[1]) * context->global_size[0] + id[0]] += 1;
        });
    }
    static constexpr uint32_t pointers[] = {0};
};

// out[group] = 0 when the group's memory is as the calling convention says, else a number that says what is wrong.
struct CheckWorkspace {
    uint64_t out;
    uint64_t local_argument_offset;  // a __local argument: where it lies in local memory
    uint64_t local_bytes;            // all of it
    uint64_t scratch_bytes;

    static void run(const std::byte* args, const LaunchContext* context, const uint64_t* group, std::byte* local,
                    std::byte* scratch) {
        const auto arguments = arguments_of<CheckWorkspace>(args);
        auto* const out = reinterpret_cast<uint32_t*>(arguments.out);
        uint32_t wrong = 0;
        if (reinterpret_cast<uintptr_t>(local) % local_memory_alignment != 0 || !local)
            wrong |= 1;
        if (reinterpret_cast<uintptr_t>(scratch) % local_memory_alignment != 0 || !scratch)
            wrong |= 2;
        if (context->local_bytes != arguments.local_bytes)
            wrong |= 4;
        // Every group fills its local memory and reads the same bytes back: no other group uses it meanwhile.
        const auto mark = static_cast<int>(group[0] & 0xff);
        std::memset(local, mark, arguments.local_bytes);
        std::memset(scratch, mark ^ 0xff, arguments.scratch_bytes);
        for (uint64_t i = 0; i < arguments.local_bytes; ++i)
            if (std::to_integer<int>(local[i]) != mark)
                wrong |= 8;
        for (uint64_t i = 0; i < arguments.scratch_bytes; ++i)
            if (std::to_integer<int>(scratch[i]) != (mark ^ 0xff))
                wrong |= 16;
        out[group[0]] = wrong;
    }
    static constexpr uint32_t pointers[] = {0};
};

// out[i] = in[i] * factor + variables[0], where `variables` are the program's.
struct Scale {
    uint64_t out;
    uint64_t in;
    uint32_t factor;

    static void run(const std::byte* args, const LaunchContext* context, const uint64_t* group, std::byte*,
                    std::byte*) {
        const auto arguments = arguments_of<Scale>(args);
        auto* const out = reinterpret_cast<uint32_t*>(arguments.out);
        const auto* const in = reinterpret_cast<const uint32_t*>(arguments.in);
        uint32_t variable = 0;
        if (context->program_variables)
            std::memcpy(&variable, context->program_variables, sizeof variable);
        for_each_item(*context, group, [&](const uint64_t* global, const uint64_t*) {
            out[global[0]] = in[global[0]] * arguments.factor + variable;
        });
    }
    static constexpr uint32_t pointers[] = {0, 8};
};

// Uses much stack.
struct DeepStack {
    static constexpr uint64_t stack_bytes = 4 << 20;
    uint64_t out;

    static void run(const std::byte* args, const LaunchContext*, const uint64_t* group, std::byte*, std::byte*) {
        auto* const out = reinterpret_cast<uint32_t*>(arguments_of<DeepStack>(args).out);
        volatile std::byte array[stack_bytes - 65536];
        for (uint64_t i = 0; i < sizeof array; i += 4096)
            array[i] = std::byte{1};
        uint32_t sum = 0;
        for (uint64_t i = 0; i < sizeof array; i += 4096)
            sum += std::to_integer<uint32_t>(array[i]);
        out[group[0]] = sum;
    }
    static constexpr uint32_t pointers[] = {0};
};

template <class Kernel>
driver::LaunchOperation launch_of(const driver::LoadedKernel& kernel, const Kernel& arguments) {
    driver::LaunchOperation operation;
    operation.kernel = &kernel;
    operation.arguments = packed(arguments);
    operation.pointer_offsets = Kernel::pointers;
    return operation;
}

} // namespace polder::conformance
