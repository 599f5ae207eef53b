// `place` decides for each value that is live at some cut: recompute (at most a few cheap instructions), register (uniform),
// or array (varying). The arrays, which values share (shared_places.h), lie in `scratch` one after another, the largest alignment first.
#include "carried_values.h"

#include "recomputation.h"
#include "shared_places.h"
#include "targets/host/workgroup/frame/abi.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

llvm::Type* memory_type(llvm::Type* type) { return type->isIntOrIntVectorTy(1) ? type->getWithNewBitWidth(8) : type; }

}  // namespace

CarriedValues::CarriedValues(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts,
                             const Regions& regions)
    : kernel_(kernel), function_(*kernel.function), uniformity_(uniformity), cuts_(cuts), regions_(regions),
      liveness_(function_, *kernel.prologue), layout_(function_.getParent()->getDataLayout()) {
    place();
}

void CarriedValues::place() {
    llvm::SmallSetVector<llvm::Instruction*, 16> arrays;
    for (llvm::BasicBlock* cut : cuts_)
        for (llvm::Instruction* value : liveness_.live_in(*cut)) {
            if (uniformity_.is_uniform(value)) {
                if (!uniform_slots_.contains(value))
                    uniform_slots_[value] = kernel_.sub_group_size > 0
                                                ? &make_shared(value->getType(), value->getName())
                                                : make_register(value->getType(), value->getName());
            }
        }
    for (llvm::Instruction& instruction : *kernel_.prologue)
        if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
            const uint64_t bytes = variable->getAllocationSize(layout_)->getFixedValue();
            statistics_.private_bytes_per_work_item += bytes;
            if (crosses_cut(*variable))
                arrays.insert(variable);
            else if (!made_here_.contains(variable))
                stays_.insert(variable);
        }
    for (llvm::Instruction* variable : arrays) {
        crossing_.insert(llvm::cast<llvm::AllocaInst>(variable));
        for (llvm::User* user : llvm::make_early_inc_range(variable->users()))
            if (auto* marker = llvm::cast<llvm::Instruction>(user); marker->isLifetimeStartOrEnd())
                marker->eraseFromParent();
    }
    for (llvm::BasicBlock* cut : cuts_)
        for (llvm::Instruction* value : liveness_.live_in(*cut))
            if (!uniformity_.is_uniform(value) && !is_recomputable(value))
                arrays.insert(value);
    place_arrays(arrays.takeVector());
}

void CarriedValues::place_arrays(llvm::SmallVector<llvm::Instruction*, 16> values) {
    for (llvm::Instruction* value : values) {
        Array array;
        if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(value)) {
            array.alignment = variable->getAlign();
            array.item_bytes = variable->getAllocationSize(layout_)->getFixedValue();
        } else {
            array.alignment = layout_.getABITypeAlign(memory_type(value->getType()));
            array.item_bytes = layout_.getTypeAllocSize(memory_type(value->getType()));
        }
        array.item_bytes = llvm::alignTo(array.item_bytes, array.alignment);
        arrays_[value] = array;
    }
    // Private variables are read and written at any time.
    const auto fits = [&](const llvm::Instruction& one, const llvm::Instruction& other) {
        return !llvm::isa<llvm::AllocaInst>(one) && !llvm::isa<llvm::AllocaInst>(other) &&
               arrays_[&one].item_bytes == arrays_[&other].item_bytes &&
               arrays_[&one].alignment == arrays_[&other].alignment;
    };
    const auto places = share_places(values, cuts_, liveness_, fits);
    const llvm::SmallVector<llvm::Instruction*, 16> all = values;
    llvm::erase_if(values, [&](const llvm::Instruction* value) { return places.lookup(value) != value; });
    // Largest alignment first: then a multiple of the item count times the bytes before an array is
    // aligned for it.
    llvm::DenseMap<const llvm::Instruction*, size_t> place;
    for (size_t i = 0; i < values.size(); ++i)
        place[values[i]] = i;
    llvm::sort(values, [&](auto* a, auto* b) {
        return std::pair(arrays_[b].alignment, place[a]) < std::pair(arrays_[a].alignment, place[b]);
    });
    llvm::IRBuilder<> at(kernel_.prologue->getTerminator());
    llvm::Value* items = nullptr;
    uint64_t& before = statistics_.scratch_bytes_per_work_item;
    if (kernel_.uses_collective_slots)
        before = values.empty() ? collective_slot_bytes
                                : llvm::alignTo(collective_slot_bytes, arrays_[values.front()].alignment);
    const auto next_base = [&](uint64_t item_bytes) {
        if (!items)
            items = at.CreateMul(at.CreateMul(kernel_.local_size[0], kernel_.local_size[1]), kernel_.local_size[2]);
        llvm::Value* base = at.CreateInBoundsGEP(at.getInt8Ty(), function_.getArg(abi::scratch),
                                                 at.CreateMul(items, at.getInt64(before)));
        before += item_bytes;
        return base;
    };
    for (llvm::Instruction* value : values)
        arrays_[value].base = next_base(arrays_[value].item_bytes);
    for (llvm::Instruction* value : all)
        arrays_[value].base = arrays_[places.lookup(value)].base;
    if (regions_.has_early_return())
        alive_ = next_base(1);
    answer_scratch_bytes(at);
}

void CarriedValues::answer_scratch_bytes(llvm::IRBuilder<>& at) {
    llvm::Value* bytes = nullptr;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function_))) {
        auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        if (!call || !call->getCalledFunction() ||
            work_item_function(*call->getCalledFunction()) != WorkItemFunction::scratch_bytes)
            continue;
        if (!bytes) {
            llvm::Value* items =
                at.CreateMul(at.CreateMul(kernel_.local_size[0], kernel_.local_size[1]), kernel_.local_size[2]);
            bytes = at.CreateMul(items, at.getInt64(statistics_.scratch_bytes_per_work_item));
        }
        call->replaceAllUsesWith(bytes);
        call->eraseFromParent();
    }
}

llvm::AllocaInst* CarriedValues::make_register(llvm::Type* type, const llvm::Twine& name) {
    auto* made = new llvm::AllocaInst(type, layout_.getAllocaAddrSpace(), name, kernel_.prologue->begin());
    registers_.push_back(made);
    made_here_.insert(made);
    return made;
}

llvm::AllocaInst& CarriedValues::make_shared(llvm::Type* type, const llvm::Twine& name) {
    auto* made = new llvm::AllocaInst(type, layout_.getAllocaAddrSpace(), name, kernel_.prologue->begin());
    made->setMetadata(shared_variable, llvm::MDNode::get(made->getContext(), {}));
    made_here_.insert(made);
    return *made;
}

bool CarriedValues::crosses_cut(const llvm::AllocaInst& variable) const {
    if (cuts_.empty() || made_here_.contains(&variable))
        return false;
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> used_in;
    llvm::SmallPtrSet<const llvm::Value*, 16> derived{&variable};
    llvm::SmallVector<const llvm::Value*> todo{&variable};
    while (!todo.empty())
        for (const llvm::User* user : todo.pop_back_val()->users()) {
            const auto* instruction = llvm::cast<llvm::Instruction>(user);
            if (instruction->isLifetimeStartOrEnd())
                continue;
            used_in.insert(instruction->getParent());
            if (instruction->getType()->isPointerTy()) {
                if (llvm::isa<llvm::CallBase>(instruction) || llvm::isa<llvm::LoadInst>(instruction))
                    return true;
                if (derived.insert(instruction).second)
                    todo.push_back(instruction);
            } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(instruction)) {
                if (derived.contains(store->getValueOperand()))
                    return true;
            } else if (!llvm::isa<llvm::LoadInst>(instruction) && !llvm::isa<llvm::MemIntrinsic>(instruction)) {
                return true;
            }
        }
    const Region* only = nullptr;
    for (const Region& region : regions_.all()) {
        if (llvm::none_of(used_in, [&](const llvm::BasicBlock* block) {
                return region.blocks.contains(const_cast<llvm::BasicBlock*>(block));
            }))
            continue;
        if (only)
            return true;
        only = &region;
    }
    return only && regions_.reaches_itself(*only);
}

bool CarriedValues::is_recomputable(const llvm::Value* value) {
    if (const auto found = recomputable_.find(value); found != recomputable_.end())
        return found->second >= 0;
    const int cost = recompute_cost(value);
    recomputable_[value] = cost;
    return cost >= 0;
}

// The number of instructions, or -1.
int CarriedValues::recompute_cost(const llvm::Value* value) {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (!instruction || instruction->getParent() == kernel_.prologue) {
        const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(value);
        return variable && stays_.contains(variable) ? -1 : 0;
    }
    if (local_id_dimension(*instruction))
        return 0;
    if (!is_cheap_to_recompute(*instruction))
        return -1;
    int cost = 1;
    for (const llvm::Use& operand : instruction->operands()) {
        if (!is_recomputable(operand.get()))
            return -1;
        cost += recomputable_[operand.get()];
    }
    return cost <= recompute_cost_max ? cost : -1;
}

llvm::Value* CarriedValues::item_address(llvm::IRBuilder<>& at, const llvm::Value* value, llvm::Value* index) {
    const Array& array = arrays_[value];
    return at.CreateInBoundsGEP(at.getInt8Ty(), array.base,
                                at.CreateMul(index, at.getInt64(array.item_bytes), "", true, true));
}

llvm::Value* CarriedValues::load_item(llvm::IRBuilder<>& at, const llvm::Value* value, llvm::Value* index) {
    llvm::Type* type = value->getType();
    llvm::LoadInst* load =
        at.CreateAlignedLoad(memory_type(type), item_address(at, value, index), arrays_[value].alignment);
    return load->getType() == type ? static_cast<llvm::Value*>(load) : at.CreateTrunc(load, type);
}
void CarriedValues::store_item(llvm::IRBuilder<>& at, const llvm::Value* value, llvm::Value* here, llvm::Value* index) {
    llvm::Type* type = memory_type(value->getType());
    if (type != value->getType())
        here = at.CreateZExt(here, type);
    at.CreateAlignedStore(here, item_address(at, value, index), arrays_[value].alignment);
}

llvm::Value* CarriedValues::recompute(llvm::IRBuilder<>& at, llvm::Instruction& value,
                                      const llvm::ValueToValueMapTy& map) {
    if (value.getParent() == kernel_.prologue || local_id_dimension(value)) {
        const auto mapped = map.find(&value);
        return mapped == map.end() ? &value : static_cast<llvm::Value*>(mapped->second);
    }
    llvm::Instruction* copy = value.clone();
    for (llvm::Use& operand : copy->operands())
        if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(operand.get()))
            operand = recompute(at, *instruction, map);
    return at.Insert(copy, value.getName());
}

}  // namespace polder::compiler::workgroup
