// A work-item is a thread; its ids are computed from the special registers %tid and %ctaid and the hidden arguments.
#include "work_items.h"

#include "machine/nvptx.h"
#include "warps.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <polder/ptx_abi.h>

namespace polder::compiler {
namespace {

using workgroup::WorkItemFunction;
using Register = llvm::Intrinsic::ID;

constexpr std::array<Register, 3> thread_registers{llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x,
                                                   llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y,
                                                   llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z};
constexpr std::array<Register, 3> block_registers{llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
                                                  llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                                  llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z};

// Loads the hidden arguments, which follow the kernel's own in its parameter.
class Hidden {
public:
    Hidden(llvm::IRBuilder<>& builder, llvm::Value* arguments, uint32_t arguments_size)
        : builder_(builder), arguments_(arguments), begin_(ptx_hidden_offset(arguments_size)) {}

    llvm::Value* load(llvm::Type* type, uint64_t member) {
        const uint64_t offset = begin_ + member;
        llvm::Value* const address = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), arguments_, offset);
        return builder_.CreateAlignedLoad(type, address,
                                          llvm::commonAlignment(llvm::Align(ptx_argument_alignment), offset));
    }
    llvm::Value* load64(uint64_t array, unsigned d) { return load(builder_.getInt64Ty(), array + uint64_t{8} * d); }
    llvm::Value* load32(uint64_t array, unsigned d) {
        return builder_.CreateZExt(load(builder_.getInt32Ty(), array + uint64_t{4} * d), builder_.getInt64Ty());
    }

private:
    llvm::IRBuilder<>& builder_;
    llvm::Value* arguments_;
    uint64_t begin_;
};

llvm::Value* read_register(llvm::IRBuilder<>& builder, Register which) {
    return builder.CreateZExt(builder.CreateIntrinsic(which, {}), builder.getInt64Ty());
}

} // namespace

WorkItems::WorkItems(llvm::IRBuilder<>& builder, llvm::Value* arguments, const KernelInfo& info,
                     const std::optional<WorkGroups>& groups) {
    using Tail = PtxHiddenArguments;
    Hidden hidden(builder, arguments, info.arguments_size);
    const bool is_whole = groups && groups->ends == WorkGroups::Ends::whole;
    const auto size = groups ? std::optional{groups->size} : info.reqd_work_group_size;
    for (unsigned d = 0; d < 3; ++d) {
        const bool is_single = size && (*size)[d] == 1;
        local_id_[d] = is_single ? builder.getInt64(0) : read_register(builder, thread_registers[d]);
        whole_size_[d] = size ? static_cast<llvm::Value*>(builder.getInt64((*size)[d]))
                              : hidden.load32(offsetof(Tail, local_size), d);
        num_groups_[d] = hidden.load32(offsetof(Tail, num_groups), d);
        global_size_[d] = hidden.load64(offsetof(Tail, global_size), d);
        global_offset_[d] = hidden.load64(offsetof(Tail, global_offset), d);
        group_id_[d] = builder.CreateAdd(read_register(builder, block_registers[d]),
                                         hidden.load32(offsetof(Tail, group_offset), d), "", true, true);
        group_begin_[d] = builder.CreateMul(group_id_[d], whole_size_[d], "", true, true);
        local_size_[d] = whole_size_[d];
        if (!is_whole && !is_single)
            local_size_[d] =
                builder.CreateBinaryIntrinsic(llvm::Intrinsic::umin, whole_size_[d],
                                              builder.CreateSub(global_size_[d], group_begin_[d], "", true, true));
    }
    thread_ = builder.CreateTrunc(linear(builder, local_id_, whole_size_), builder.getInt32Ty());
    lane_ = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {});
    if (!is_whole && info.uses_sub_groups)
        is_in_range_ = number_in_order(builder);
    for (unsigned d = 0; d < 3; ++d) {
        id_in_range_[d] = builder.CreateAdd(group_begin_[d], local_id_[d], "", true, true);
        global_id_[d] = builder.CreateAdd(id_in_range_[d], global_offset_[d], "", true, true);
    }
    if (!is_whole && !info.uses_sub_groups)
        is_in_range_ = is_below_global_size(builder);
    work_dim_ = hidden.load(builder.getInt32Ty(), offsetof(Tail, work_dim));
    llvm::Type* const global_pointer = llvm::PointerType::get(builder.getContext(), nvptx_global_space);
    program_variables_ = hidden.load(global_pointer, offsetof(Tail, program_variables));
    print_ring_ = hidden.load(global_pointer, offsetof(Tail, print_ring));
}

llvm::Value* WorkItems::is_below_global_size(llvm::IRBuilder<>& builder) const {
    llvm::Value* is_in_range = builder.getTrue();
    for (unsigned d = 0; d < 3; ++d)
        is_in_range = builder.CreateAnd(is_in_range, builder.CreateICmpULT(id_in_range_[d], global_size_[d]));
    return is_in_range;
}

llvm::Value* WorkItems::number_in_order(llvm::IRBuilder<>& builder) {
    llvm::Value* is_smaller = builder.getFalse();
    for (unsigned d = 0; d < 3; ++d)
        is_smaller = builder.CreateOr(is_smaller, builder.CreateICmpNE(local_size_[d], whole_size_[d]));
    llvm::BasicBlock* const before = builder.GetInsertBlock();
    auto* const smaller = llvm::BasicBlock::Create(builder.getContext(), "smaller", before->getParent());
    auto* const numbered = llvm::BasicBlock::Create(builder.getContext(), "numbered", before->getParent());
    builder.CreateCondBr(is_smaller, smaller, numbered);

    builder.SetInsertPoint(smaller);
    Values id{};
    llvm::Value* rest = thread_;
    for (unsigned d = 0; d < 3; ++d) {
        llvm::Value* const size = builder.CreateTrunc(local_size_[d], builder.getInt32Ty());
        id[d] = builder.CreateZExt(builder.CreateURem(rest, size), builder.getInt64Ty());
        rest = builder.CreateUDiv(rest, size);
    }
    // A thread beyond the last work-item of the smaller work-group has a remainder above 0.
    llvm::Value* const is_first = builder.CreateIsNull(rest);
    builder.CreateBr(numbered);

    builder.SetInsertPoint(numbered);
    const auto join = [&](llvm::Value* of_whole, llvm::Value* of_smaller) {
        llvm::PHINode* const phi = builder.CreatePHI(of_whole->getType(), 2);
        phi->addIncoming(of_whole, before);
        phi->addIncoming(of_smaller, smaller);
        return phi;
    };
    for (unsigned d = 0; d < 3; ++d)
        local_id_[d] = join(local_id_[d], id[d]);
    return join(builder.getTrue(), is_first);
}

llvm::Value* WorkItems::answer(llvm::IRBuilder<>& at, WorkItemFunction which, llvm::Value* dimension) const {
    switch (which) {
    case WorkItemFunction::work_dim: return work_dim_;
    case WorkItemFunction::global_size: return select(at, global_size_, dimension, 1);
    case WorkItemFunction::global_id: return select(at, global_id_, dimension, 0);
    case WorkItemFunction::local_size: return select(at, local_size_, dimension, 1);
    case WorkItemFunction::enqueued_local_size: return select(at, whole_size_, dimension, 1);
    case WorkItemFunction::local_id: return select(at, local_id_, dimension, 0);
    case WorkItemFunction::num_groups: return select(at, num_groups_, dimension, 1);
    case WorkItemFunction::group_id: return select(at, group_id_, dimension, 0);
    case WorkItemFunction::global_offset: return select(at, global_offset_, dimension, 0);
    case WorkItemFunction::global_linear_id: return linear(at, id_in_range_, global_size_);
    case WorkItemFunction::local_linear_id: return linear(at, local_id_, local_size_);
    case WorkItemFunction::sub_group_lane: return lane_;
    case WorkItemFunction::sub_group_number: return at.CreateUDiv(thread_, at.getInt32(warp_size));
    case WorkItemFunction::sub_group_width: return at.getInt32(warp_size);
    default: return nullptr;
    }
}

llvm::Value* WorkItems::select(llvm::IRBuilder<>& at, const Values& values, llvm::Value* dimension,
                               uint64_t beyond) const {
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(dimension)) {
        const uint64_t d = constant->getZExtValue();
        return d < 3 ? values[d] : at.getInt64(beyond);
    }
    llvm::Value* result = at.getInt64(beyond);
    for (unsigned d = 0; d < 3; ++d)
        result = at.CreateSelect(at.CreateICmpEQ(dimension, llvm::ConstantInt::get(dimension->getType(), d)), values[d],
                                 result);
    return result;
}

llvm::Value* WorkItems::linear(llvm::IRBuilder<>& at, const Values& ids, const Values& sizes) const {
    llvm::Value* id = ids[2];
    for (const unsigned d : {1U, 0U})
        id = at.CreateAdd(at.CreateMul(id, sizes[d]), ids[d]);
    return id;
}

} // namespace polder::compiler
