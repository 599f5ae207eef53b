// The calling convention between kernels that are compiled to PTX and the driver that launches them.
//
// The compiler (lib/compiler/targets/nvptx) emits such kernels, the CUDA driver launches them. Change both together and increment
// `ptx_abi_version`, which is part of every cache key.
//
// Entry      One `.entry` per kernel, named TargetCode::entry. One thread is one work-item: local id d is %tid.{x,y,z}[d]. In a smaller
//            group of a kernel with sub-groups, the work-items are the first threads in linear order.
// Grid       Blocks of exactly local_size[d] threads. The last group of a dimension may be smaller: threads whose global
//            id is outside the range return at once, and barriers (bar.sync) do not wait for threads that returned
//            (sm_70 and later). CUDA's limits of a grid may be smaller than the range: the driver then launches
//            several grids with different `group_offset`; the work-group's id is group_offset[d] + %ctaid[d].
// Parameter  One structure, passed by value, aligned to 16: the packed arguments as OpenCL orders them, at the offsets of
//            KernelParameter::offset; then PtxHiddenArguments at ptx_hidden_offset(TargetCode::arguments_size).
//            Pointers to global and constant memory are addresses of global memory. Images and samplers are passed as image_abi.h
//            describes.
// Local      A work-group's local memory is static memory that the code reserves, followed by the dynamic memory
// memory     of the launch: TargetCode::dynamic_local_bytes + LaunchOperation::local_argument_bytes bytes. A __local
//            argument holds a byte offset, counted as for host functions: the kernel's own local memory
//            (TargetCode::local_bytes) comes first.
// printf     TargetCode::print is set when the kernel calls printf. The launch then has a ring: memory that the device can
//            write and add to atomically, which begins with a PtxPrintRing. Before the launch the driver sets the header and
//            fills the records with zeros; after the kernel has ended it passes the bytes behind the header to
//            TargetCode::print. All records have the same format, so several launches may use one ring.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polder {

inline constexpr uint32_t ptx_abi_version = 1;

// The values that follow the packed arguments. Arrays are padded with 1 (sizes) or 0 (offsets) beyond `work_dim`.
struct PtxHiddenArguments {
    uint64_t global_offset[3];
    uint64_t global_size[3];
    uint64_t program_variables;  // address of the program-scope variables; 0 when the program has none
    uint64_t print_ring;  // address of a PtxPrintRing; 0 when the kernel does not print
    uint32_t local_size[3];  // of a whole work-group
    uint32_t num_groups[3];  // of the whole range, rounded up
    uint32_t group_offset[3];  // the first group of this grid
    uint32_t work_dim;
};
static_assert(sizeof(PtxHiddenArguments) == 104);

inline constexpr uint32_t ptx_argument_alignment = 16;

constexpr uint32_t ptx_hidden_offset(uint32_t arguments_size) { return (arguments_size + 7) / 8 * 8; }
// The size of the whole parameter.
constexpr uint32_t ptx_parameter_bytes(uint32_t arguments_size) {
    return ptx_hidden_offset(arguments_size) + static_cast<uint32_t>(sizeof(PtxHiddenArguments));
}

// The header of a printf ring. A record is reserved by adding its size to `used`; one that does not fit is dropped, and
// printf returns -1.
struct PtxPrintRing {
    uint64_t used;  // bytes that kernels requested; may exceed `capacity`
    uint64_t capacity;  // bytes behind this header
};
static_assert(sizeof(PtxPrintRing) == 16);

// One printf call: this header, the format text with its terminating zero padded to a multiple of 8, then the arguments in
// slots as printf's formatter (lib/kernel) takes them. The slot of a string holds the string's offset from the
// beginning of the record; 0 is a null pointer. Strings lie behind the arguments.
struct PtxPrintRecord {
    uint32_t bytes;  // of the whole record, a multiple of 8; 0: the kernel did not finish it
    uint32_t format_bytes;
    uint32_t arguments_bytes;
    uint32_t reserved;
};
static_assert(sizeof(PtxPrintRecord) == 16);

}  // namespace polder
