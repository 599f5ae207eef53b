// Code for usual launches only (compiler::Launches, decision 345): ids are small, and rows consist of whole vectors. The promise is written as masks of
// numbers that have these bits anyway, from which all passes see it.
#pragma once

#include <cstdint>

namespace llvm {
class Function;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct LoweredKernel;

// Of a kernel that will only be launched so, and then of its work-group function.
inline constexpr const char* usual_launches_attribute = "polder-usual-launches";
// Its value for Launches::whole_vectors; else it is empty.
inline constexpr const char* of_whole_vectors = "whole-vectors";
[[nodiscard]] bool has_usual_launches(const llvm::Function& function);

// The end of usual global ids.
inline constexpr uint64_t usual_ids_end = uint64_t{1} << 28;

// Promises that the rows of a kernel with usual launches, in the dimension of the innermost loop, are multiples of 16, which is one vector.
void promise_whole_rows(LoweredKernel& kernel);
// Promises that they begin at global ids that are multiples of 16. It matters where the kernel divides ids into blocks, such as `get_global_id(0) / 16`.
void promise_first_ids(LoweredKernel& kernel);
// Where several vectors run at once: promises that the rows are multiples of 64, which is up to four vectors, unless the kernel has ids in other dimensions, too,
// because its work-groups are often squares, or its launches are those of whole vectors.
void promise_several_vectors(llvm::Function& function);
// The number of which rows are multiples; 1 without a promise.
[[nodiscard]] uint64_t row_multiple(llvm::Function& work_group_function);

// Whether a number of work-items, at least one, is known to be a multiple of `lanes`, a power of two: a constant, or by the promise.
[[nodiscard]] bool is_multiple(const llvm::Value& count, unsigned lanes);

// Removes the loops one by one behind vectors that have all work-items.
void remove_loops_without_items(llvm::Function& function);

}  // namespace polder::compiler::workgroup
