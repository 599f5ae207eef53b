// The types of a module: SPIR-V's properties of each, and LLVM's type for it.
//
// Built once from valid instructions, then constant. The depth of nesting is limited as in the specification (2.17), and no
// type is larger than memory, so that LLVM's sizes cannot overflow. Does not outlive the LLVMContext.
#pragma once

#include "binary.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/DerivedTypes.h>

namespace polder::compiler::spirv {

// The number of generic pointers in SPIR's address spaces.
inline constexpr unsigned generic_space = 4;

struct Type {
    spv::Op kind = spv::OpNop;  // OpType…; OpNop: unknown
    uint32_t width = 0;  // bits of an integer or float
    uint32_t element = 0;  // of a vector, array or pointer; the return type of a function
    uint64_t count = 0;  // elements of a vector or array
    spv::StorageClass storage = spv::StorageClassFunction;  // of a pointer
    std::vector<uint32_t> members;  // of a structure; the parameters of a function
    std::vector<uint32_t> literals;  // of an image or pipe: all its operands
    uint32_t depth = 0;
    llvm::Type* llvm = nullptr;
};

[[nodiscard]] inline bool is_pipe_to(const Type& type, spv::AccessQualifier access) {
    return type.kind == spv::OpTypePipe && type.literals.front() == static_cast<uint32_t>(access);
}

// LLVM's type of OpTypeReserveId.
[[nodiscard]] llvm::Type* reservation_type(llvm::LLVMContext& context);
// Those of OpTypeQueue and OpTypeDeviceEvent.
[[nodiscard]] llvm::Type* queue_type(llvm::LLVMContext& context);
[[nodiscard]] llvm::Type* device_event_type(llvm::LLVMContext& context);

// LLVM's address space for spir64; nothing for a storage class that kernels cannot use.
[[nodiscard]] std::optional<unsigned> address_space(spv::StorageClass storage);

class Types {
public:
    explicit Types(llvm::LLVMContext& context) : context_(context) {}

    // Fails with the reason when the type is not one of OpenCL's. `length` is that of an array.
    [[nodiscard]] Result<void> add(const Instruction& instruction, uint64_t length, bool is_packed,
                                   const std::string& name);
    void add_forward_pointer(uint32_t id, spv::StorageClass storage);

    [[nodiscard]] bool has(uint32_t id) const { return types_.contains(id); }
    // A type of kind OpNop when there is none of that id.
    [[nodiscard]] const Type& get(uint32_t id) const;
    [[nodiscard]] llvm::Type* llvm(uint32_t id) const { return get(id).llvm; }

private:
    [[nodiscard]] Result<void> make(const Instruction& instruction, Type& type, uint64_t length);
    [[nodiscard]] Result<void> make_scalar(Type& type);
    [[nodiscard]] Result<void> make_array(Type& type);
    [[nodiscard]] Result<void> make_structure(const Instruction& instruction, Type& type, bool is_packed,
                                              const std::string& name);
    [[nodiscard]] Result<void> make_pointer(Type& type);
    // Whether the pointer points, directly or through other pointers, to the type `id`, or to a type that is not known yet.
    [[nodiscard]] bool points_to(const Type& pointer, uint32_t id) const;
    [[nodiscard]] Result<void> make_function(const Instruction& instruction, Type& type);

    llvm::LLVMContext& context_;
    llvm::DenseMap<uint32_t, Type> types_;
};

}  // namespace polder::compiler::spirv
