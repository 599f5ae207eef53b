#include "regions.h"

#include "abi.h"
#include "liveness.h"
#include "vectoriser.h"
#include "work_item_functions.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>
#include <map>

namespace polder::compiler::workgroup {

namespace {

// All that is reachable from `entry` up to the next cuts.
struct Region {
    llvm::BasicBlock* entry = nullptr;
    llvm::SmallSetVector<llvm::BasicBlock*, 16> blocks;
    llvm::SmallSetVector<llvm::BasicBlock*, 4> exits;  // cuts
    bool returns = false;
    llvm::BasicBlock* preheader = nullptr;  // of the work-item loops; where control enters the region

    // Some work-items may return while others go on.
    [[nodiscard]] bool is_mixed() const { return returns && !exits.empty(); }
};

// The blocks of one region's loop nest, and where the body finds the ids.
struct LoopNest {
    llvm::BasicBlock* entry = nullptr;  // first block of the body
    llvm::BasicBlock* latch = nullptr;
    llvm::BasicBlock* done = nullptr;
    Extent local_id{};
    llvm::Value* index = nullptr;  // of the work-item in its group
};

// A load of the launch's parameters: never changes, never traps.
bool is_launch_load(const llvm::Instruction& instruction) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (!load || !load->hasMetadata(llvm::LLVMContext::MD_invariant_load))
        return false;
    return llvm::isa<llvm::Argument>(llvm::getUnderlyingObject(load->getPointerOperand(), 0));
}

// Whether `instruction` may be executed earlier and more often than written.
bool is_movable(const llvm::Instruction& instruction) {
    if (llvm::isa<llvm::PHINode>(instruction) || llvm::isa<llvm::AllocaInst>(instruction) || instruction.isTerminator())
        return false;
    if (is_launch_load(instruction))
        return true;
    return !instruction.mayReadOrWriteMemory() && llvm::isSafeToSpeculativelyExecute(&instruction);
}

// Integer and address arithmetic that costs less than a load.
bool is_cheap(const llvm::Instruction& instruction) {
    if (!instruction.getType()->isIntOrPtrTy())
        return false;
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
    case llvm::Instruction::LShr:
    case llvm::Instruction::AShr:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor:
    case llvm::Instruction::GetElementPtr:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::SExt:
    case llvm::Instruction::AddrSpaceCast:
    case llvm::Instruction::ICmp: return true;
    default: return false;
    }
}

class WorkItemLoops {
public:
    WorkItemLoops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts)
        : kernel_(kernel), function_(*kernel.function), uniformity_(uniformity), cuts_(cuts),
          liveness_(function_, *kernel.prologue), layout_(function_.getParent()->getDataLayout()),
          context_(function_.getContext()) {}

    RegionStatistics run() {
        for (llvm::BasicBlock& block : function_)
            if (&block != kernel_.prologue)
                original_.push_back(&block);
        for (llvm::Instruction& instruction : llvm::instructions(function_))
            if (const auto dimension = local_id_dimension(instruction))
                local_ids_.emplace_back(&instruction, *dimension);
        find_regions();
        place_slots();
        return_ = llvm::BasicBlock::Create(context_, "return", &function_);
        llvm::ReturnInst::Create(context_, return_);
        for (Region& region : regions_)
            region.preheader = llvm::BasicBlock::Create(context_, "region", &function_);
        for (llvm::BasicBlock* cut : cuts_)
            dispatch_[cut] = llvm::BasicBlock::Create(context_, "dispatch", &function_);
        for (Region& region : regions_)
            emit(region);
        for (llvm::BasicBlock* cut : cuts_)
            emit_dispatch(*cut);
        replace_body();
        llvm::DominatorTree dominators(function_);
        llvm::PromoteMemToReg(registers_, dominators);
        return statistics_;
    }

private:
    // Regions and slots ------------------------------------------------------------------------

    void find_regions() {
        add_region(kernel_.prologue->getSingleSuccessor());
        for (llvm::BasicBlock* cut : cuts_)
            for (llvm::BasicBlock* successor : llvm::successors(cut))
                if (!region_of_.contains(successor))
                    add_region(successor);
        for (const Region& region : regions_)
            has_early_return_ |= region.is_mixed();
    }

    void add_region(llvm::BasicBlock* entry) {
        Region region;
        region.entry = entry;
        region.blocks.insert(entry);
        for (size_t i = 0; i < region.blocks.size(); ++i) {
            llvm::BasicBlock* block = region.blocks[i];
            region.returns |= llvm::isa<llvm::ReturnInst>(block->getTerminator());
            for (llvm::BasicBlock* successor : llvm::successors(block))
                if (cuts_.contains(successor))
                    region.exits.insert(successor);
                else
                    region.blocks.insert(successor);
        }
        region_of_[entry] = regions_.size();
        regions_.push_back(std::move(region));
    }

    // Gives a place to everything that lives across a cut: uniform values a register, private variables
    // and varying values that are not cheap to recompute an array over the work-items.
    void place_slots() {
        llvm::SmallSetVector<llvm::Instruction*, 16> arrays;
        for (llvm::BasicBlock* cut : cuts_)
            for (llvm::Instruction* value : liveness_.live_in(*cut)) {
                if (uniformity_.is_uniform(value)) {
                    if (!uniform_slots_.contains(value))
                        uniform_slots_[value] = make_register(value->getType(), value->getName());
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

    struct Array {
        uint64_t item_bytes = 0;
        llvm::Align alignment;
        llvm::Value* base = nullptr;
    };

    void place_arrays(llvm::SmallVector<llvm::Instruction*, 16> values) {
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
        if (has_early_return_)
            alive_ = next_base(1);
        answer_scratch_bytes(at);
    }

    void answer_scratch_bytes(llvm::IRBuilder<>& at) {
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

    [[nodiscard]] llvm::Type* memory_type(llvm::Type* type) const {
        return type->isIntOrIntVectorTy(1) ? type->getWithNewBitWidth(8) : type;
    }

    llvm::AllocaInst* make_register(llvm::Type* type, const llvm::Twine& name) {
        auto* made = new llvm::AllocaInst(type, layout_.getAllocaAddrSpace(), name, kernel_.prologue->begin());
        registers_.push_back(made);
        made_here_.insert(made);
        return made;
    }

    // Whether the contents of `variable` may live across a cut: it is used in two regions, in one that may
    // be entered again, or where we cannot see.
    bool crosses_cut(llvm::AllocaInst& variable) {
        if (cuts_.empty() || made_here_.contains(&variable))
            return false;
        llvm::SmallPtrSet<llvm::BasicBlock*, 16> used_in;
        llvm::SmallPtrSet<llvm::Value*, 16> derived{&variable};
        llvm::SmallVector<llvm::Value*> todo{&variable};
        while (!todo.empty())
            for (llvm::User* user : todo.pop_back_val()->users()) {
                auto* instruction = llvm::cast<llvm::Instruction>(user);
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
        for (const Region& region : regions_) {
            if (llvm::none_of(used_in, [&](llvm::BasicBlock* block) { return region.blocks.contains(block); }))
                continue;
            if (only)
                return true;
            only = &region;
        }
        return only && reaches_itself(*only);
    }

    bool reaches_itself(const Region& from) {
        llvm::SmallPtrSet<const Region*, 8> seen;
        llvm::SmallVector<const Region*> todo{&from};
        while (!todo.empty())
            for (llvm::BasicBlock* cut : todo.pop_back_val()->exits)
                for (llvm::BasicBlock* successor : llvm::successors(cut)) {
                    const Region* next = &regions_[region_of_[successor]];
                    if (next == &from)
                        return true;
                    if (seen.insert(next).second)
                        todo.push_back(next);
                }
        return false;
    }

    // Whether `value` can be computed again in any region, in a few cheap instructions.
    bool is_recomputable(const llvm::Value* value) {
        if (const auto found = recomputable_.find(value); found != recomputable_.end())
            return found->second >= 0;
        const int cost = recompute_cost(value);
        recomputable_[value] = cost;
        return cost >= 0;
    }

    static constexpr int recompute_cost_max = 10;

    // The number of instructions, or -1.
    int recompute_cost(const llvm::Value* value) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (!instruction || instruction->getParent() == kernel_.prologue) {
            const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(value);
            return variable && stays_.contains(variable) ? -1 : 0;
        }
        if (local_id_dimension(*instruction))
            return 0;
        if (!is_cheap(*instruction))
            return -1;
        int cost = 1;
        for (const llvm::Use& operand : instruction->operands()) {
            if (!is_recomputable(operand.get()))
                return -1;
            cost += recomputable_[operand.get()];
        }
        return cost <= recompute_cost_max ? cost : -1;
    }

    // One region ------------------------------------------------------------------------------------

    struct Rejoin {
        llvm::Instruction* original;
        llvm::Value* at_entry;
    };

    void emit(Region& region) {
        LoopNest nest = make_loops(region);
        llvm::ValueToValueMapTy map;
        llvm::SmallVector<Rejoin> rejoins;
        bind_entry_values(region, nest, map, rejoins);
        const llvm::SmallVector<llvm::BasicBlock*> body = clone_body(region, map);
        connect_exits(region, nest, map, body, rejoins);
        hoist(region, body, map);
        mark_parallel(nest);
    }

    LoopNest make_loops(Region& region) {
        LoopNest nest;
        llvm::BasicBlock* outer = region.preheader;
        llvm::Value* row = nullptr;
        std::array<llvm::BasicBlock*, 3> heads{};
        for (unsigned d : {2U, 1U, 0U}) {
            heads[d] = llvm::BasicBlock::Create(context_, llvm::Twine("items.") + llvm::Twine("xyz"[d]), &function_);
            llvm::BranchInst::Create(heads[d], outer);
            llvm::IRBuilder<> at(heads[d]);
            llvm::PHINode* id = at.CreatePHI(at.getInt64Ty(), 2, llvm::Twine("local_id.") + llvm::Twine("xyz"[d]));
            id->addIncoming(at.getInt64(0), outer);
            nest.local_id[d] = id;
            row =
                row ? at.CreateAdd(at.CreateMul(row, kernel_.actual_size[d], "", true, true), id, "", true, true) : id;
            outer = heads[d];
        }
        nest.index = row;
        nest.entry = llvm::BasicBlock::Create(context_, "item", &function_);
        llvm::BranchInst::Create(nest.entry, heads[0]);
        nest.done = llvm::BasicBlock::Create(context_, "items.done", &function_);
        llvm::BasicBlock* latch = nullptr;
        for (unsigned d : {0U, 1U, 2U}) {
            auto* next =
                llvm::BasicBlock::Create(context_, llvm::Twine("items.next.") + llvm::Twine("xyz"[d]), &function_);
            if (latch)
                keep_plain(*llvm::IRBuilder<>(latch).CreateCondBr(back_condition(*latch), next, heads[d - 1]));
            latch = next;
            llvm::IRBuilder<> at(latch);
            auto* id = llvm::cast<llvm::PHINode>(nest.local_id[d]);
            llvm::Value* increment = at.CreateAdd(id, at.getInt64(1), "", true, true);
            id->addIncoming(increment, latch);
            at.CreateICmpEQ(increment, kernel_.actual_size[d]);
            if (d == 0)
                nest.latch = latch;
        }
        keep_plain(*llvm::IRBuilder<>(latch).CreateCondBr(back_condition(*latch), nest.done, heads[2]));
        finish_region(region, nest);
        return nest;
    }

    // Unrolling or unswitching a loop over work-items costs code, and gains nothing.
    llvm::SmallVector<llvm::Metadata*, 4> plain_loop_properties() {
        const auto property = [&](llvm::StringRef name) {
            return llvm::MDNode::get(context_, llvm::MDString::get(context_, name));
        };
        return {nullptr, property("llvm.loop.unroll.disable"), property("llvm.loop.unswitch.partial.disable")};
    }
    void keep_plain(llvm::Instruction& back_branch) {
        llvm::MDNode* loop = llvm::MDNode::getDistinct(context_, plain_loop_properties());
        loop->replaceOperandWith(0, loop);
        back_branch.setMetadata(llvm::LLVMContext::MD_loop, loop);
    }
    static llvm::Value* back_condition(llvm::BasicBlock& latch) { return &latch.back(); }

    // After the last work-item: on to the cut that they reached.
    void finish_region(Region& region, LoopNest& nest) {
        llvm::IRBuilder<> at(nest.done);
        if (region.exits.empty()) {
            at.CreateBr(return_);
        } else if (region.exits.size() == 1 && !region.returns) {
            at.CreateBr(dispatch_[region.exits[0]]);
        } else {
            next_ = make_register(at.getInt32Ty(), "next");
            llvm::IRBuilder<>(region.preheader->getTerminator()).CreateStore(at.getInt32(0), next_);
            llvm::SwitchInst* choose = at.CreateSwitch(at.CreateLoad(at.getInt32Ty(), next_), return_);
            for (size_t i = 0; i < region.exits.size(); ++i)
                choose->addCase(at.getInt32(static_cast<uint32_t>(i + 1)), dispatch_[region.exits[i]]);
            return;
        }
        next_ = nullptr;
    }

    llvm::Value* item_address(llvm::IRBuilder<>& at, const Array& array, llvm::Value* index) {
        return at.CreateInBoundsGEP(at.getInt8Ty(), array.base,
                                    at.CreateMul(index, at.getInt64(array.item_bytes), "", true, true));
    }

    // Makes what the region needs from before available at its entry.
    void bind_entry_values(Region& region, LoopNest& nest, llvm::ValueToValueMapTy& map,
                           llvm::SmallVector<Rejoin>& rejoins) {
        if (alive_ && region.entry != regions_.front().entry)
            nest.entry = check_alive(nest);
        llvm::IRBuilder<> at(nest.entry);
        llvm::IRBuilder<> once(region.preheader->getTerminator());
        for (auto [call, dimension] : local_ids_)
            map[call] = nest.local_id[dimension];
        for (llvm::AllocaInst* variable : crossing_) {
            llvm::Value* address = item_address(at, arrays_[variable], nest.index);
            if (address->getType() != variable->getType())
                address = at.CreateAddrSpaceCast(address, variable->getType());
            map[variable] = address;
        }
        const llvm::SmallVector<llvm::Instruction*> live = liveness_.live_in(*region.entry);
        for (llvm::Instruction* value : live) {
            llvm::Value* here = nullptr;
            if (uniformity_.is_uniform(value)) {
                here = once.CreateLoad(value->getType(), uniform_slots_[value]);
            } else if (is_recomputable(value)) {
                here = recompute(at, *value, map);
            } else {
                here = load_item(at, arrays_[value], value->getType(), nest.index);
            }
            if (!region.blocks.contains(value->getParent()))
                map[value] = here;
            else
                rejoins.push_back({value, here});
        }
        index_ = nest.index;
        entry_ = nest.entry;
        local_id_ = nest.local_id;
    }

    // Skips work-items that returned in an earlier region.
    llvm::BasicBlock* check_alive(LoopNest& nest) {
        auto* first = llvm::BasicBlock::Create(context_, "item.alive", &function_);
        llvm::IRBuilder<> at(nest.entry);
        llvm::Value* alive = at.CreateLoad(at.getInt8Ty(), at.CreateInBoundsGEP(at.getInt8Ty(), alive_, nest.index));
        at.CreateCondBr(at.CreateIsNotNull(alive), first, nest.latch);
        return first;
    }

    llvm::Value* load_item(llvm::IRBuilder<>& at, const Array& array, llvm::Type* type, llvm::Value* index) {
        llvm::LoadInst* load = at.CreateAlignedLoad(memory_type(type), item_address(at, array, index), array.alignment);
        return load->getType() == type ? static_cast<llvm::Value*>(load) : at.CreateTrunc(load, type);
    }
    void store_item(llvm::IRBuilder<>& at, const Array& array, llvm::Value* value, llvm::Value* index) {
        llvm::Type* type = memory_type(value->getType());
        if (type != value->getType())
            value = at.CreateZExt(value, type);
        at.CreateAlignedStore(value, item_address(at, array, index), array.alignment);
    }

    // Values recomputed at the entry are kept apart from `map`: the region may define them again.
    llvm::Value* recompute(llvm::IRBuilder<>& at, llvm::Instruction& value, llvm::ValueToValueMapTy& map) {
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

    llvm::SmallVector<llvm::BasicBlock*> clone_body(const Region& region, llvm::ValueToValueMapTy& map) {
        llvm::SmallVector<llvm::BasicBlock*> body;
        llvm::SmallVector<llvm::BasicBlock*> order = reverse_post_order(region);
        for (llvm::BasicBlock* block : order) {
            llvm::BasicBlock* copy = llvm::CloneBasicBlock(block, map, "", &function_);
            map[block] = copy;
            body.push_back(copy);
            for (llvm::PHINode& phi : block->phis()) {
                auto* copied = llvm::cast<llvm::PHINode>(map[&phi]);
                for (unsigned i = phi.getNumIncomingValues(); i-- > 0;)
                    if (!region.blocks.contains(phi.getIncomingBlock(i)))
                        copied->removeIncomingValue(i, false);
            }
        }
        // A local id that the body computes is the loop's counter.
        for (llvm::BasicBlock* block : order)
            for (llvm::Instruction& instruction : *block)
                if (const auto dimension = local_id_dimension(instruction)) {
                    llvm::cast<llvm::Instruction>(map[&instruction])->eraseFromParent();
                    map[&instruction] = local_id_[*dimension];
                }
        for (llvm::BasicBlock* block : body)
            for (llvm::Instruction& instruction : *block)
                llvm::RemapInstruction(&instruction, map, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
        llvm::BranchInst::Create(llvm::cast<llvm::BasicBlock>(map[region.entry]), entry_);
        return body;
    }

    llvm::SmallVector<llvm::BasicBlock*> reverse_post_order(const Region& region) {
        llvm::SmallVector<llvm::BasicBlock*> order;
        llvm::SmallPtrSet<llvm::BasicBlock*, 16> seen{region.entry};
        llvm::SmallVector<std::pair<llvm::BasicBlock*, llvm::succ_iterator>> stack{
            {region.entry, succ_begin(region.entry)}};
        while (!stack.empty()) {
            auto& [block, next] = stack.back();
            if (next == llvm::succ_end(block)) {
                order.push_back(block);
                stack.pop_back();
                continue;
            }
            llvm::BasicBlock* successor = *next++;
            if (region.blocks.contains(successor) && seen.insert(successor).second)
                stack.emplace_back(successor, llvm::succ_begin(successor));
        }
        std::reverse(order.begin(), order.end());
        return order;
    }

    void connect_exits(Region& region, LoopNest& nest, llvm::ValueToValueMapTy& map,
                       llvm::ArrayRef<llvm::BasicBlock*> body, llvm::ArrayRef<Rejoin> rejoins) {
        std::map<llvm::BasicBlock*, llvm::BasicBlock*> exit_of;  // cut, or null for return
        const auto exit_block = [&](llvm::BasicBlock* cut) {
            llvm::BasicBlock*& block = exit_of[cut];
            if (!block) {
                block = llvm::BasicBlock::Create(context_, cut ? "item.stop" : "item.return", &function_);
                llvm::BranchInst::Create(nest.latch, block);
            }
            return block;
        };
        for (llvm::BasicBlock* block : body) {
            llvm::Instruction* terminator = block->getTerminator();
            if (llvm::isa<llvm::ReturnInst>(terminator)) {
                terminator->eraseFromParent();
                llvm::BranchInst::Create(exit_block(nullptr), block);
                continue;
            }
            for (unsigned i = 0; i < terminator->getNumSuccessors(); ++i)
                if (cuts_.contains(terminator->getSuccessor(i)))
                    terminator->setSuccessor(i, exit_block(terminator->getSuccessor(i)));
        }
        rejoin(map, rejoins);
        for (auto [cut, block] : exit_of) {
            llvm::IRBuilder<> at(block->getTerminator());
            if (cut)
                save_live_values(at, region, *cut, map);
            if (alive_ && (region.is_mixed() || region.entry == regions_.front().entry))
                at.CreateStore(at.getInt8(cut ? 1 : 0), at.CreateInBoundsGEP(at.getInt8Ty(), alive_, index_));
            if (cut && next_) {
                const auto number = llvm::find(region.exits, cut) - region.exits.begin() + 1;
                at.CreateStore(at.getInt32(static_cast<uint32_t>(number)), next_);
            }
        }
    }

    // A value that the region both receives and defines: joins the two wherever both may arrive.
    void rejoin(llvm::ValueToValueMapTy& map, llvm::ArrayRef<Rejoin> rejoins) {
        joined_.clear();
        for (const Rejoin& value : rejoins) {
            auto* defined = llvm::cast<llvm::Instruction>(map[value.original]);
            auto updater = std::make_unique<llvm::SSAUpdater>();
            updater->Initialize(value.original->getType(), value.original->getName());
            updater->AddAvailableValue(entry_, value.at_entry);
            updater->AddAvailableValue(defined->getParent(), defined);
            llvm::SmallVector<llvm::Use*> uses;
            for (llvm::Use& use : defined->uses())
                uses.push_back(&use);
            for (llvm::Use* use : uses) {
                auto* user = llvm::cast<llvm::Instruction>(use->getUser());
                const auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
                const llvm::BasicBlock* at = phi ? phi->getIncomingBlock(*use) : user->getParent();
                if (at != defined->getParent())
                    updater->RewriteUse(*use);
            }
            joined_[value.original] = std::move(updater);
        }
    }

    void save_live_values(llvm::IRBuilder<>& at, const Region& region, llvm::BasicBlock& cut,
                          llvm::ValueToValueMapTy& map) {
        for (llvm::Instruction* value : liveness_.live_in(cut)) {
            if (!region.blocks.contains(value->getParent()))
                continue;  // unchanged since the region's entry
            const bool uniform = uniformity_.is_uniform(value);
            if (!uniform && is_recomputable(value))
                continue;
            const auto joined = joined_.find(value);
            llvm::Value* here = joined == joined_.end() ? static_cast<llvm::Value*>(map[value])
                                                        : joined->second->GetValueInMiddleOfBlock(at.GetInsertBlock());
            if (uniform)
                at.CreateStore(here, uniform_slots_[value]);
            else
                store_item(at, arrays_[value], here, index_);
        }
    }

    // Computes before the loops what is uniform, pure and depends on nothing inside.
    void hoist(const Region& region, llvm::ArrayRef<llvm::BasicBlock*> body, const llvm::ValueToValueMapTy& map) {
        llvm::DenseMap<const llvm::Instruction*, bool> uniform;
        for (llvm::BasicBlock* block : region.blocks)
            for (llvm::Instruction& instruction : *block)
                if (uniformity_.is_uniform(&instruction))
                    if (const auto* copy = llvm::dyn_cast_or_null<llvm::Instruction>(map.lookup(&instruction)))
                        uniform[copy] = true;
        const auto is_outside = [&](llvm::Value* value) {
            const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
            return !instruction || instruction->getParent() == kernel_.prologue ||
                   instruction->getParent() == region.preheader;
        };
        for (llvm::BasicBlock* block : body)
            for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block))
                if (uniform.lookup(&instruction) && is_movable(instruction) &&
                    llvm::all_of(instruction.operands(), is_outside))
                    instruction.moveBefore(region.preheader->getTerminator()->getIterator());
    }

    // Tells the loop vectoriser that work-items are independent between cuts. Atomics stay outside of the
    // promise, and so does private memory that work-items use one after the other.
    void mark_parallel(const LoopNest& nest) {
        llvm::MDNode* group = llvm::MDNode::getDistinct(context_, {});
        llvm::SmallPtrSet<llvm::BasicBlock*, 16> seen{nest.latch};
        llvm::SmallVector<llvm::BasicBlock*> todo{llvm::cast<llvm::Instruction>(local_id_[0])->getParent()};
        while (!todo.empty()) {
            llvm::BasicBlock* block = todo.pop_back_val();
            if (!seen.insert(block).second)
                continue;
            todo.append(llvm::succ_begin(block), llvm::succ_end(block));
            for (llvm::Instruction& instruction : *block)
                if (instruction.mayReadOrWriteMemory() && !instruction.isAtomic() && !instruction.isVolatile() &&
                    !touches_shared_private(instruction))
                    instruction.setMetadata(llvm::LLVMContext::MD_access_group, group);
        }
        llvm::Metadata* parallel[] = {llvm::MDString::get(context_, "llvm.loop.parallel_accesses"), group};
        llvm::Metadata* tag[] = {llvm::MDString::get(context_, work_item_loop_tag)};
        llvm::SmallVector<llvm::Metadata*, 4> properties = plain_loop_properties();
        properties.push_back(llvm::MDNode::get(context_, parallel));
        properties.push_back(llvm::MDNode::get(context_, tag));
        llvm::MDNode* loop = llvm::MDNode::getDistinct(context_, properties);
        loop->replaceOperandWith(0, loop);
        nest.latch->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop, loop);
    }

    bool touches_shared_private(const llvm::Instruction& instruction) {
        const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
        if (!address)
            return !stays_.empty();
        llvm::SmallVector<const llvm::Value*> objects;
        llvm::getUnderlyingObjects(address, objects, nullptr, 0);
        return llvm::any_of(objects, [&](const llvm::Value* object) {
            const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object);
            return variable && stays_.contains(variable);
        });
    }

    // The frame ---------------------------------------------------------------------------------------

    void emit_dispatch(llvm::BasicBlock& cut) {
        llvm::Instruction* terminator = cut.getTerminator()->clone();
        terminator->insertInto(dispatch_[&cut], dispatch_[&cut]->end());
        for (unsigned i = 0; i < terminator->getNumSuccessors(); ++i)
            terminator->setSuccessor(i, regions_[region_of_[terminator->getSuccessor(i)]].preheader);
        if (terminator->getNumSuccessors() < 2)
            return;
        auto* condition = llvm::dyn_cast<llvm::Instruction>(terminator->getOperand(0));
        const auto slot = condition ? uniform_slots_.find(condition) : uniform_slots_.end();
        if (slot == uniform_slots_.end())
            return;
        llvm::IRBuilder<> at(terminator);
        terminator->setOperand(0, at.CreateLoad(condition->getType(), slot->second));
    }

    void replace_body() {
        kernel_.prologue->getTerminator()->setSuccessor(0, regions_.front().preheader);
        for (llvm::BasicBlock* block : original_)
            block->dropAllReferences();
        for (llvm::BasicBlock* block : original_)
            block->eraseFromParent();
    }

    const LoweredKernel& kernel_;
    llvm::Function& function_;
    const Uniformity& uniformity_;
    const Cuts& cuts_;
    Liveness liveness_;
    const llvm::DataLayout& layout_;
    llvm::LLVMContext& context_;

    std::vector<llvm::BasicBlock*> original_;
    llvm::SmallVector<std::pair<llvm::Instruction*, unsigned>> local_ids_;
    std::vector<Region> regions_;
    llvm::DenseMap<llvm::BasicBlock*, size_t> region_of_;  // by entry
    bool has_early_return_ = false;

    llvm::DenseMap<const llvm::Value*, llvm::AllocaInst*> uniform_slots_;
    llvm::DenseMap<const llvm::Value*, Array> arrays_;
    llvm::SmallSetVector<llvm::AllocaInst*, 8> crossing_;        // private variables that live across a cut
    llvm::SmallPtrSet<const llvm::AllocaInst*, 8> stays_;        // and those that do not
    llvm::SmallPtrSet<const llvm::AllocaInst*, 16> made_here_;
    llvm::SmallVector<llvm::AllocaInst*> registers_;             // to be promoted at the end
    llvm::DenseMap<const llvm::Value*, int> recomputable_;       // cost, or -1
    llvm::Value* alive_ = nullptr;                               // a byte per work-item: has not returned

    llvm::BasicBlock* return_ = nullptr;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> dispatch_;  // of each cut

    // Of the region being emitted.
    llvm::AllocaInst* next_ = nullptr;  // where the work-items go, when that is not known before
    llvm::Value* index_ = nullptr;
    llvm::BasicBlock* entry_ = nullptr;
    Extent local_id_{};
    std::map<const llvm::Value*, std::unique_ptr<llvm::SSAUpdater>> joined_;

    RegionStatistics statistics_;
};

} // namespace

void hoist_uniform_values(llvm::Function& function, llvm::BasicBlock& prologue, const Uniformity& uniformity) {
    const auto is_outside = [&](llvm::Value* value) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        return !instruction || instruction->getParent() == &prologue;
    };
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function)) {
        if (block == &prologue)
            continue;
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block))
            if (uniformity.is_uniform(&instruction) && is_movable(instruction) &&
                llvm::all_of(instruction.operands(), is_outside))
                instruction.moveBefore(prologue.getTerminator()->getIterator());
    }
}

RegionStatistics form_work_item_loops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts) {
    llvm::BasicBlock* body = kernel.prologue->getSingleSuccessor();
    auto* entry = llvm::BasicBlock::Create(body->getContext(), "region", kernel.function, body);
    llvm::BranchInst::Create(body, entry);
    kernel.prologue->getTerminator()->replaceSuccessorWith(body, entry);
    body->replacePhiUsesWith(kernel.prologue, entry);
    const RegionStatistics statistics = WorkItemLoops(kernel, uniformity, cuts).run();
    for (unsigned i : {abi::local_memory, abi::scratch})
        kernel.function->addParamAttr(i, llvm::Attribute::NoAlias);
    return statistics;
}

} // namespace polder::compiler::workgroup
