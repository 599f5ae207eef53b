// The loops' counters are the local ids. In loops over sub-groups, the ids of a work-item are computed from its linear number. Where a
// sub-group lies within one row, this needs one division for the whole sub-group.
#include "loop_nest.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <bit>
#include <llvm/IR/IRBuilder.h>
#include <string>

namespace polder::compiler::workgroup {

namespace {

llvm::BasicBlock* make_block(const LoweredKernel& kernel, const llvm::Twine& name) {
    return llvm::BasicBlock::Create(kernel.function->getContext(), name, kernel.function);
}

// Unrolling or unswitching a loop over work-items makes the code larger but not faster. `tags`, `other`: further properties (set_loop_properties).
void keep_plain(llvm::Instruction& back_branch, llvm::ArrayRef<llvm::StringRef> tags = {},
                const llvm::MDNode* other = nullptr) {
    llvm::SmallVector<llvm::StringRef, 4> names{"llvm.loop.unroll.disable", "llvm.loop.unswitch.partial.disable",
                                                items_tag};
    llvm::append_range(names, tags);
    set_loop_properties(back_branch, names, other);
}

llvm::Value* back_condition(llvm::BasicBlock& latch) { return &latch.back(); }

llvm::PHINode* make_counter(llvm::BasicBlock& head, llvm::BasicBlock& from, const llvm::Twine& name) {
    llvm::IRBuilder<> at(&head);
    llvm::PHINode* counter = at.CreatePHI(at.getInt64Ty(), 2, name);
    counter->addIncoming(at.getInt64(0), &from);
    return counter;
}

// Increments the counter in `latch`; the caller adds the branch.
llvm::Value* count_on(llvm::PHINode& counter, llvm::BasicBlock& latch, uint64_t step) {
    llvm::IRBuilder<> at(&latch);
    llvm::Value* next = at.CreateAdd(&counter, at.getInt64(step), "", true, true);
    counter.addIncoming(next, &latch);
    return next;
}

bool is_constant_one(const llvm::Value* value) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
    return constant && constant->isOne();
}

class SubGroupLoopsMaker {
public:
    SubGroupLoopsMaker(const LoweredKernel& kernel, llvm::BasicBlock& preheader)
        : kernel_(kernel), preheader_(preheader), size_(kernel.sub_group_size) {}

    SubGroupLoops run() {
        head_ = make_block(kernel_, "sub_groups");
        auto* whole = make_block(kernel_, "sub_group.whole");
        auto* any = make_block(kernel_, "sub_group.any");
        auto* latch = make_block(kernel_, "sub_groups.next");
        llvm::IRBuilder<> before(&preheader_);
        const Extent& sizes = kernel_.actual_size;
        total_ = before.CreateMul(before.CreateMul(sizes[0], sizes[1], "", true, true), sizes[2], "", true, true);
        before.CreateBr(head_);
        first_ = make_counter(*head_, preheader_, "sub_group.first");
        llvm::IRBuilder<> at(head_);
        number_ = at.CreateLShr(first_, std::countr_zero(size_));
        make_first_ids(at);
        const auto* count = llvm::dyn_cast<llvm::ConstantInt>(total_);
        llvm::Value* is_whole =
            count && count->getZExtValue() % size_ == 0
                ? static_cast<llvm::Value*>(at.getTrue())
                : at.CreateICmpULE(at.CreateAdd(first_, at.getInt64(size_), "", true, true), total_);
        at.CreateCondBr(is_whole, whole, any);
        SubGroupLoops loops;
        loops.whole = make_lane_loop(*whole, *latch, Guard::none);
        loops.any = make_lane_loop(*any, *latch, Guard::missing_work_items);
        loops.done = make_block(kernel_, "sub_groups.done");
        llvm::Value* next = count_on(*first_, *latch, size_);
        llvm::IRBuilder<> back(latch);
        keep_plain(*back.CreateCondBr(back.CreateICmpULT(next, total_), head_, loops.done));
        return loops;
    }

private:
    enum class Guard : uint8_t { none, missing_work_items };

    // Whether a sub-group lies within one row of x, so that its ids follow from the first work-item's.
    [[nodiscard]] bool is_in_one_row() const {
        const auto* width = llvm::dyn_cast<llvm::ConstantInt>(kernel_.actual_size[0]);
        return width && width->getZExtValue() % size_ == 0;
    }
    [[nodiscard]] bool is_one_dimensional() const {
        return is_constant_one(kernel_.actual_size[1]) && is_constant_one(kernel_.actual_size[2]);
    }

    struct Ids {
        llvm::Value *x, *y, *z;
    };
    // Local ids of the work-item `linear`; 32 bits are enough, and divide faster.
    Ids ids_of(llvm::IRBuilder<>& at, llvm::Value* linear) {
        const auto narrow = [&](llvm::Value* value) { return at.CreateTrunc(value, at.getInt32Ty()); };
        const auto wide = [&](llvm::Value* value) { return at.CreateZExt(value, at.getInt64Ty()); };
        llvm::Value* id = narrow(linear);
        llvm::Value* columns = narrow(kernel_.actual_size[0]);
        llvm::Value* rows = narrow(kernel_.actual_size[1]);
        llvm::Value* row = at.CreateUDiv(id, columns);
        return {wide(at.CreateURem(id, columns)), wide(at.CreateURem(row, rows)), wide(at.CreateUDiv(row, rows))};
    }
    void make_first_ids(llvm::IRBuilder<>& at) {
        if (!is_one_dimensional() && is_in_one_row())
            first_ids_ = ids_of(at, first_);
    }

    LoopNest make_lane_loop(llvm::BasicBlock& preheader, llvm::BasicBlock& exit, Guard guard) {
        LoopNest nest;
        nest.head = make_block(kernel_, "sub_group.lanes");
        nest.entry = make_block(kernel_, "item");
        nest.latch = make_block(kernel_, "sub_group.next");
        llvm::BranchInst::Create(nest.head, &preheader);
        llvm::PHINode* lane = make_counter(*nest.head, preheader, "lane");
        llvm::IRBuilder<> at(nest.head);
        nest.index = at.CreateAdd(first_, lane, "", true, true);
        if (guard == Guard::missing_work_items)
            at.CreateCondBr(at.CreateICmpULT(nest.index, total_), nest.entry, nest.latch);
        else
            at.CreateBr(nest.entry);
        llvm::IRBuilder<> in(nest.entry);
        Ids ids{nest.index, in.getInt64(0), in.getInt64(0)};
        if (!is_one_dimensional())
            ids = is_in_one_row() ? Ids{in.CreateAdd(first_ids_.x, lane, "", true, true), first_ids_.y, first_ids_.z}
                                  : ids_of(in, nest.index);
        nest.ids = {ids.x, ids.y, ids.z, lane, number_, nest.index};
        llvm::Value* next = count_on(*lane, *nest.latch, 1);
        llvm::IRBuilder<> back(nest.latch);
        back.CreateCondBr(back.CreateICmpEQ(next, back.getInt64(size_)), &exit, nest.head);
        return nest;
    }

    const LoweredKernel& kernel_;
    llvm::BasicBlock& preheader_;
    const unsigned size_;
    llvm::BasicBlock* head_ = nullptr;
    llvm::Value *total_ = nullptr, *number_ = nullptr;
    llvm::PHINode* first_ = nullptr;
    Ids first_ids_{};
};

// A loop over work-items: over those of one dimension, or over rows.
struct Counted {
    std::string name;
    llvm::Value* count;
};

bool has_ids_of_rows(const LoweredKernel& kernel) {
    const llvm::Module& module = *kernel.function->getParent();
    return has_local_id(module, kernel.order[1]) || has_local_id(module, kernel.order[2]);
}

// Innermost first, as in the next function.
llvm::SmallVector<Counted, 3> one_loop_for_each_dimension(const LoweredKernel& kernel) {
    llvm::SmallVector<Counted, 3> loops;
    for (const unsigned d : kernel.order)
        loops.push_back({std::string(1, "xyz"[d]), kernel.actual_size[d]});
    return loops;
}

// Each loop costs time in most of LLVM's passes, so kernels that do not ask for the ids of rows have one loop for all of them.
llvm::SmallVector<Counted, 3> one_loop_for_all_rows(const LoweredKernel& kernel, llvm::BasicBlock& preheader) {
    const auto [first, second, third] = kernel.order;
    llvm::Value* const rows = llvm::IRBuilder<>(&preheader)
                                  .CreateMul(kernel.actual_size[second], kernel.actual_size[third], "rows", true, true);
    return {{std::string(1, "xyz"[first]), kernel.actual_size[first]}, {"rows", rows}};
}

}  // namespace

ItemLoops make_first_item(const LoweredKernel& kernel, llvm::BasicBlock& preheader) {
    ItemLoops made;
    LoopNest& nest = made.nest;
    nest.head = nest.entry = make_block(kernel, "first_item");
    nest.latch = made.done = make_block(kernel, "first_item.done");
    nest.index = llvm::ConstantInt::get(llvm::Type::getInt64Ty(preheader.getContext()), 0);
    nest.ids.fill(nest.index);
    llvm::BranchInst::Create(nest.entry, &preheader);
    return made;
}

ItemLoops make_item_loops(const LoweredKernel& kernel, llvm::BasicBlock& preheader) {
    ItemLoops loops;
    LoopNest& nest = loops.nest;
    const bool has_rows = has_ids_of_rows(kernel);
    const llvm::SmallVector<Counted, 3> counted =
        has_rows ? one_loop_for_each_dimension(kernel) : one_loop_for_all_rows(kernel, preheader);
    llvm::BasicBlock* outer = &preheader;
    llvm::SmallVector<llvm::BasicBlock*, 3> heads(counted.size());
    llvm::SmallVector<llvm::PHINode*, 3> counters(counted.size());
    for (size_t i = counted.size(); i-- > 0;) {
        heads[i] = make_block(kernel, "items." + counted[i].name);
        llvm::BranchInst::Create(heads[i], outer);
        counters[i] = make_counter(*heads[i], *outer, "local_id." + counted[i].name);
        llvm::IRBuilder<> at(heads[i]);
        llvm::Value* const before = nest.index ? at.CreateMul(nest.index, counted[i].count, "", true, true) : nullptr;
        nest.index = before ? at.CreateAdd(before, counters[i], "", true, true) : counters[i];
        outer = heads[i];
    }
    for (size_t i = 0; i < (has_rows ? counted.size() : 1); ++i)
        nest.ids[kernel.order[i]] = counters[i];
    nest.ids[place_dimension] = nest.index;
    nest.head = heads[0];
    nest.entry = make_block(kernel, "item");
    llvm::BranchInst::Create(nest.entry, outer);
    if (kernel.sub_group_size > 0) {
        llvm::IRBuilder<> at(nest.entry);
        nest.ids[lane_dimension] = at.CreateAnd(nest.index, at.getInt64(kernel.sub_group_size - 1));
        nest.ids[sub_group_dimension] = at.CreateLShr(nest.index, std::countr_zero(kernel.sub_group_size));
    }
    loops.done = make_block(kernel, "items.done");
    // Groups of kernels that use the ids of the innermost dimension only rarely have more than one row.
    const auto close_row = [&](llvm::Instruction& back_branch) {
        if (has_rows)
            keep_plain(back_branch);
        else
            keep_plain(back_branch, {single_row_tag});
    };
    llvm::BasicBlock* latch = nullptr;
    for (size_t i = 0; i < counted.size(); ++i) {
        llvm::BasicBlock* const next = make_block(kernel, "items.next." + counted[i].name);
        if (latch)
            close_row(*llvm::IRBuilder<>(latch).CreateCondBr(back_condition(*latch), next, heads[i - 1]));
        else
            nest.latch = next;
        latch = next;
        llvm::Value* const increment = count_on(*counters[i], *latch, 1);
        llvm::IRBuilder<>(latch).CreateICmpEQ(increment, counted[i].count);
    }
    close_row(*llvm::IRBuilder<>(latch).CreateCondBr(back_condition(*latch), loops.done, heads.back()));
    return loops;
}

SubGroupLoops make_sub_group_loops(const LoweredKernel& kernel, llvm::BasicBlock& preheader) {
    return SubGroupLoopsMaker(kernel, preheader).run();
}

void tag_loop(const LoopNest& nest, const char* tag, llvm::MDNode* access_group) {
    llvm::LLVMContext& context = nest.latch->getContext();
    llvm::MDNode* parallel = nullptr;
    if (access_group) {
        llvm::Metadata* accesses[] = {llvm::MDString::get(context, "llvm.loop.parallel_accesses"), access_group};
        parallel = llvm::MDNode::get(context, {nullptr, llvm::MDNode::get(context, accesses)});
    }
    keep_plain(*nest.latch->getTerminator(), {tag}, parallel);
}

}  // namespace polder::compiler::workgroup
