// The marks in metadata and attributes that say to later steps of work-group compilation what a loop, a variable or a function is.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instruction.h>

namespace polder::compiler::workgroup {

// In llvm.loop metadata:
// the loops that `vectorize_work_item_loops` looks at (vectorizer.h),
inline constexpr const char* work_item_loop_tag = "polder.work_item_loop";
// the loops over the work-items of one sub-group, of a whole one and of any (regions/loop_nest.h),
inline constexpr const char* whole_sub_group_tag = "polder.whole_sub_group";
inline constexpr const char* sub_group_tag = "polder.sub_group";
// and the loops over work-items, and over rows of them.
inline constexpr const char* items_tag = "polder.items";

// Whether the loop's properties keep LLVM's vectorizer from it.
[[nodiscard]] bool is_left_by_llvm(const llvm::Loop& loop);

// Makes it the loop that `back` ends: one with the properties of another loop, when there is one, and with these.
void set_loop_properties(llvm::Instruction& back, llvm::ArrayRef<llvm::StringRef> names,
                         const llvm::MDNode* other = nullptr);

// Metadata of variables of which all lanes use the same memory.
inline constexpr const char* shared_variable = "polder.shared";

// Attribute of the functions that compare and exchange (plain_operations.h).
inline constexpr const char* exchange_attribute = "polder.exchange";
[[nodiscard]] bool is_exchange_call(const llvm::Instruction& instruction);

}  // namespace polder::compiler::workgroup
