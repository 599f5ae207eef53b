// Class Entry makes the function and its parameter, calls the kernel, inlines the functions that need hidden arguments, and replaces
// the intrinsics: work-item functions by values of WorkItems, others by PTX instructions. Local memory beyond what PTX can
// reserve statically is placed in the launch's dynamic memory.
#include "kernel_entry.h"

#include "analyses.h"
#include "approximations.h"
#include "machine/nvptx.h"
#include "module/program_variables.h"
#include "work_items.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <polder/ptx_abi.h>

namespace polder::compiler {
namespace {

using workgroup::WorkItemFunction;

// PTX can reserve at most this many bytes for a kernel's own variables. A launch may add more (dynamic memory).
constexpr uint64_t static_local_bytes_max = uint64_t{48} << 10;
// Each work-item of a work-group has a slot. No processor supports larger work-groups.
constexpr uint64_t group_size_max = 1024;
constexpr uint64_t memory_scope_work_group = 1;
constexpr uint64_t memory_scope_sub_group = 4;

constexpr const char* print_ring_function = "_polder_print_ring";
constexpr const char* dynamic_begin_function = "polder.dynamic_local_begin";
// lib/kernel/cl/nvptx/local_memory.cl
constexpr const char* own_local_memory_function = "_polder_own_local_memory";
constexpr const char* own_local_bytes_function = "_polder_own_local_bytes";
constexpr const char* launch_local_memory_function = "_polder_launch_local_memory";
constexpr const char* launch_local_bytes_function = "_polder_launch_local_bytes";
constexpr const char* collective_slots_function = "_polder_collective_slots";

// Functions of lib/kernel that are one instruction of PTX.
struct Instruction {
    llvm::StringRef name;
    llvm::Intrinsic::ID intrinsic;
    llvm::Intrinsic::ID flushing = intrinsic;  // in functions that flush denormals
};
constexpr std::array instructions{
    Instruction{"_polder_is_global", llvm::Intrinsic::nvvm_isspacep_global},
    Instruction{"_polder_is_local", llvm::Intrinsic::nvvm_isspacep_shared},
    Instruction{"_polder_is_private", llvm::Intrinsic::nvvm_isspacep_local},
    Instruction{"_polder_timer_ns", llvm::Intrinsic::nvvm_read_ptx_sreg_globaltimer},
    Instruction{"_polder_cycles", llvm::Intrinsic::nvvm_read_ptx_sreg_clock64},
    Instruction{"_polder_sin_approx", llvm::Intrinsic::nvvm_sin_approx_f, llvm::Intrinsic::nvvm_sin_approx_ftz_f},
    Instruction{"_polder_cos_approx", llvm::Intrinsic::nvvm_cos_approx_f, llvm::Intrinsic::nvvm_cos_approx_ftz_f},
    Instruction{"_polder_log2_approx", llvm::Intrinsic::nvvm_lg2_approx_f, llvm::Intrinsic::nvvm_lg2_approx_ftz_f},
    Instruction{"_polder_exp2_approx", llvm::Intrinsic::nvvm_ex2_approx, llvm::Intrinsic::nvvm_ex2_approx_ftz},
    Instruction{"_polder_sqrt_approx", llvm::Intrinsic::nvvm_sqrt_approx_f, llvm::Intrinsic::nvvm_sqrt_approx_ftz_f},
    Instruction{"_polder_rsqrt_approx", llvm::Intrinsic::nvvm_rsqrt_approx_f, llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f},
    Instruction{"_polder_divide_approx", llvm::Intrinsic::nvvm_div_full, llvm::Intrinsic::nvvm_div_full_ftz},
};

const Instruction* find_instruction(const llvm::Function& function) {
    const auto* const found =
        llvm::find_if(instructions, [&](const Instruction& candidate) { return candidate.name == function.getName(); });
    return found == instructions.end() ? nullptr : found;
}

std::vector<llvm::CallInst*> calls_of(llvm::Function& function) {
    std::vector<llvm::CallInst*> calls;
    for (llvm::User* user : function.users())
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(user); call && call->getCalledFunction() == &function)
            calls.push_back(call);
    return calls;
}

// Whether the entry computes the result of calls of `function`.
bool needs_entry(const llvm::Function& function) {
    if (!function.isDeclaration() || function.isIntrinsic())
        return false;
    const llvm::StringRef name = function.getName();
    if (name == program_variables_function || name == print_ring_function)
        return true;
    const auto which = workgroup::work_item_function(function);
    return which && *which != WorkItemFunction::barrier && *which != WorkItemFunction::collective_slots;
}

// Marks for inlining every function that calls, directly or through others, a function whose result the entry computes.
void inline_what_needs_the_entry(llvm::Module& module) {
    llvm::DenseSet<llvm::Function*> marked;
    llvm::SmallVector<llvm::Function*> todo;
    for (llvm::Function& function : module)
        if (needs_entry(function))
            todo.push_back(&function);
    while (!todo.empty()) {
        llvm::Function* const callee = todo.pop_back_val();
        for (llvm::CallInst* call : calls_of(*callee)) {
            call->removeFnAttr(llvm::Attribute::NoInline);
            llvm::Function* const caller = call->getFunction();
            if (!marked.insert(caller).second)
                continue;
            caller->removeFnAttr(llvm::Attribute::NoInline);
            caller->removeFnAttr(llvm::Attribute::OptimizeNone);
            caller->addFnAttr(llvm::Attribute::AlwaysInline);
            todo.push_back(caller);
        }
    }
}

void run_inliner(llvm::Module& module) {
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);
    llvm::ModulePassManager passes;
    passes.addPass(llvm::AlwaysInlinerPass());
    passes.addPass(llvm::GlobalDCEPass());
    passes.run(module, analyses.modules);
}

// `restrict` holds for one work-item; with it, LLVM would move reads across a barrier after which other work-items' writes
// are visible. Memory that the kernel only reads is not written by another thread, so it keeps `restrict`.
void forget_restrict(llvm::Function& kernel, const KernelInfo& info) {
    for (const auto& [index, argument] : llvm::enumerate(info.arguments))
        if (info.sees_work_groups && argument.access != Access::read)
            kernel.removeParamAttr(static_cast<unsigned>(index), llvm::Attribute::NoAlias);
}

std::string joined(const std::array<uint64_t, 3>& size) {
    return std::to_string(size[0]) + "," + std::to_string(size[1]) + "," + std::to_string(size[2]);
}

class Entry {
public:
    Entry(llvm::Function& kernel, const KernelInfo& info, const std::optional<WorkGroups>& groups)
        : module_(*kernel.getParent()), kernel_(kernel), info_(info), groups_(groups) {}

    Result<KernelEntry> make() {
        forget_restrict(kernel_, info_);
        create();
        inline_what_needs_the_entry(module_);
        run_inliner(module_);
        POLDER_TRY(replace_questions());
        replace_everywhere();
        place_local_memory();
        result_.function = entry_;
        return result_;
    }

private:
    [[nodiscard]] llvm::LLVMContext& context() const { return module_.getContext(); }

    void create() {
        kernel_.setName(info_.name + ".body");
        for (llvm::Function& function : module_)
            if (!function.isDeclaration())
                function.setLinkage(llvm::GlobalValue::InternalLinkage);
        kernel_.removeFnAttr(llvm::Attribute::NoInline);
        kernel_.addFnAttr(llvm::Attribute::AlwaysInline);
        llvm::Type* const pointer = llvm::PointerType::get(context(), 0);
        llvm::Type* const block =
            llvm::ArrayType::get(llvm::Type::getInt8Ty(context()), ptx_parameter_bytes(info_.arguments_size));
        entry_ = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context()), {pointer}, false),
                                        llvm::GlobalValue::ExternalLinkage, info_.name, module_);
        entry_->setCallingConv(llvm::CallingConv::PTX_Kernel);
        entry_->setDoesNotThrow();
        if (flushes_denormals(kernel_))
            flush_denormals(*entry_);
        entry_->addParamAttr(0, llvm::Attribute::getWithByValType(context(), block));
        entry_->addParamAttr(0, llvm::Attribute::getWithAlignment(context(), llvm::Align(ptx_argument_alignment)));
        for (const llvm::Attribute::AttrKind kind :
             {llvm::Attribute::ReadOnly, llvm::Attribute::NoAlias, llvm::Attribute::NoUndef})
            entry_->addParamAttr(0, kind);
        // Without this attribute, LLVM may copy the parameter into each thread's memory when a function gets a pointer into it.
        if (has_image(info_))
            entry_->addParamAttr(0, llvm::Attribute::get(context(), "nvvm.grid_constant"));
        if (info_.reqd_work_group_size)
            entry_->addFnAttr("nvvm.reqntid", joined(*info_.reqd_work_group_size));
        else if (groups_)
            entry_->addFnAttr("nvvm.maxntid", joined(groups_->size));

        auto* const prologue = llvm::BasicBlock::Create(context(), "prologue", entry_);
        auto* const body = llvm::BasicBlock::Create(context(), "body", entry_);
        auto* const end = llvm::BasicBlock::Create(context(), "end", entry_);
        llvm::IRBuilder<> builder(prologue);
        items_.emplace(builder, entry_->getArg(0), info_, groups_);
        if (llvm::Value* const is_in_range = items_->is_in_range())
            builder.CreateCondBr(is_in_range, body, end);
        else
            builder.CreateBr(body);
        builder.SetInsertPoint(body);
        llvm::SmallVector<llvm::Value*> arguments;
        for (llvm::Argument& parameter : kernel_.args())
            arguments.push_back(argument(builder, parameter));
        llvm::CallInst* const call = builder.CreateCall(&kernel_, arguments);
        for (llvm::Argument& parameter : kernel_.args())
            if (parameter.hasByValAttr())
                call->addParamAttr(parameter.getArgNo(),
                                   kernel_.getParamAttribute(parameter.getArgNo(), llvm::Attribute::ByVal));
        builder.CreateBr(end);
        llvm::IRBuilder<>(end).CreateRetVoid();
    }

    llvm::Value* argument(llvm::IRBuilder<>& builder, const llvm::Argument& parameter) {
        const KernelArgument& packed = info_.arguments[parameter.getArgNo()];
        llvm::Value* const address =
            builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), entry_->getArg(0), packed.offset);
        if (packed.kind == ArgumentKind::image)
            return address;
        const llvm::Align alignment = llvm::commonAlignment(llvm::Align(ptx_argument_alignment), packed.offset);
        if (parameter.hasByValAttr()) {
            llvm::IRBuilder<> at(&entry_->getEntryBlock(), entry_->getEntryBlock().begin());
            auto* const copy = at.CreateAlloca(parameter.getParamByValType());
            copy->setAlignment(std::max(parameter.getParamAlign().valueOrOne(), llvm::Align(8)));
            builder.CreateMemCpy(copy, copy->getAlign(), address, alignment, packed.size);
            return copy;
        }
        if (packed.kind == ArgumentKind::local_pointer) {
            llvm::Value* const offset = builder.CreateAlignedLoad(builder.getInt64Ty(), address, alignment);
            llvm::FunctionCallee begin = module_.getOrInsertFunction(dynamic_begin_function, builder.getInt64Ty());
            llvm::Value* const place = builder.CreateSub(offset, builder.CreateCall(begin));
            return builder.CreateGEP(builder.getInt8Ty(), &dynamic_memory(), place);
        }
        return builder.CreateAlignedLoad(parameter.getType(), address, alignment);
    }

    // The local memory that a launch gives to each work-group.
    llvm::GlobalVariable& dynamic_memory() {
        if (dynamic_ == nullptr) {
            dynamic_ =
                new llvm::GlobalVariable(module_, llvm::ArrayType::get(llvm::Type::getInt8Ty(context()), 0), false,
                                         llvm::GlobalValue::ExternalLinkage, nullptr, "polder_dynamic_local", nullptr,
                                         llvm::GlobalValue::NotThreadLocal, nvptx_local_space);
            dynamic_->setAlignment(llvm::Align(local_memory_alignment));
        }
        return *dynamic_;
    }

    Result<void> replace_questions() {
        for (llvm::Function& function : llvm::make_early_inc_range(module_)) {
            if (!needs_entry(function))
                continue;
            for (llvm::CallInst* call : calls_of(function)) {
                if (call->getFunction() != entry_)
                    return fail(Status::out_of_resources, "recursive function '" +
                                                              call->getFunction()->getName().str() +
                                                              "' reaches a work-item function");
                replace(*call, function);
            }
        }
        return {};
    }

    void replace(llvm::CallInst& call, const llvm::Function& function) {
        llvm::IRBuilder<> at(&call);
        llvm::Value* value = nullptr;
        if (function.getName() == program_variables_function)
            value = items_->program_variables();
        else if (function.getName() == print_ring_function)
            value = items_->print_ring();
        else
            value = items_->answer(at, *workgroup::work_item_function(function),
                                   call.arg_empty() ? nullptr : call.getArgOperand(0));
        if (value != nullptr && value->getType() != call.getType())
            value = at.CreateZExtOrTrunc(value, call.getType());
        call.replaceAllUsesWith(value != nullptr ? value : llvm::PoisonValue::get(call.getType()));
        call.eraseFromParent();
    }

    // Replaces intrinsics that need no hidden argument, in all functions.
    void replace_everywhere() {
        for (llvm::Function& function : llvm::make_early_inc_range(module_)) {
            if (!function.isDeclaration())
                continue;
            if (const Instruction* const instruction = find_instruction(function))
                for (llvm::CallInst* call : calls_of(function))
                    replace(*call,
                            flushes_denormals(*call->getFunction()) ? instruction->flushing : instruction->intrinsic);
            else if (function.getName() == collective_slots_function)
                replace_slots(function);
            else if (workgroup::work_item_function(function) == WorkItemFunction::barrier)
                for (llvm::CallInst* call : calls_of(function))
                    replace_barrier(*call);
        }
    }

    static void replace(llvm::CallInst& call, llvm::Intrinsic::ID intrinsic) {
        llvm::IRBuilder<> at(&call);
        const llvm::SmallVector<llvm::Value*> arguments(call.args());
        const bool is_question = !call.getType()->isFloatTy() && !call.getType()->isIntegerTy(64);
        llvm::Value* value = at.CreateIntrinsic(is_question ? at.getInt1Ty() : call.getType(), intrinsic, arguments);
        if (value->getType() != call.getType())
            value = at.CreateZExt(value, call.getType());
        call.replaceAllUsesWith(value);
        call.eraseFromParent();
    }

    void replace_slots(llvm::Function& function) {
        auto* const type = llvm::ArrayType::get(llvm::Type::getInt64Ty(context()), group_size_max);
        auto* const slots = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                                     llvm::UndefValue::get(type), "polder_collective_slots", nullptr,
                                                     llvm::GlobalValue::NotThreadLocal, nvptx_local_space);
        slots->addAttribute(local_variable_attribute);
        for (llvm::CallInst* call : calls_of(function)) {
            call->replaceAllUsesWith(slots);
            call->eraseFromParent();
        }
    }

    // bar.sync orders memory accesses within the work-group. A wider scope needs a fence before it.
    void replace_barrier(llvm::CallInst& call) {
        llvm::IRBuilder<> at(&call);
        if (call.arg_size() > 1) {
            const auto* const scope = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(1));
            const bool is_narrow = scope && (scope->getZExtValue() <= memory_scope_work_group ||
                                             scope->getZExtValue() == memory_scope_sub_group);
            if (!is_narrow)
                at.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                               context().getOrInsertSyncScopeID("device"));
        }
        at.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {}, {at.getInt32(0)});
        call.eraseFromParent();
    }

    // Computes the size of the kernel's local variables, and moves them to the launch's dynamic memory when they are larger than PTX
    // can reserve, or into one variable where the kernel clears them.
    void place_local_memory() {
        const llvm::DataLayout& layout = module_.getDataLayout();
        const auto alignment_of = [&](const llvm::GlobalVariable* variable) {
            return std::max(variable->getAlign().valueOrOne(), layout.getPrefTypeAlign(variable->getValueType()));
        };
        const auto is_more_aligned = [&](auto* a, auto* b) { return alignment_of(a) > alignment_of(b); };
        // The most aligned first, in the module's order among equals.
        llvm::SmallVector<llvm::GlobalVariable*> variables;
        for (llvm::GlobalVariable& variable : llvm::make_early_inc_range(module_.globals())) {
            variable.removeDeadConstantUsers();
            if (variable.getAddressSpace() != nvptx_local_space || &variable == dynamic_)
                continue;
            if (variable.use_empty())
                variable.eraseFromParent();
            else
                variables.insert(llvm::upper_bound(variables, &variable, is_more_aligned), &variable);
        }
        llvm::DenseMap<llvm::GlobalVariable*, uint64_t> places;
        for (llvm::GlobalVariable* variable : variables) {
            places[variable] = llvm::alignTo(result_.local_bytes, alignment_of(variable));
            result_.local_bytes = places[variable] + layout.getTypeAllocSize(variable->getValueType()).getFixedValue();
            variable->setAlignment(alignment_of(variable));
        }
        const bool is_large = result_.local_bytes > static_local_bytes_max;
        const bool is_cleared = module_.getFunction(own_local_memory_function) != nullptr;
        llvm::GlobalVariable* whole = nullptr;
        if (is_large) {
            result_.dynamic_local_bytes = result_.local_bytes;
            whole = &dynamic_memory();
        } else if (is_cleared && result_.local_bytes != 0) {
            whole = &local_variable(result_.local_bytes, "polder_own_local");
            whole->setAlignment(std::max(alignment_of(variables.front()), llvm::Align(4)));
        }
        if (whole != nullptr)
            for (llvm::GlobalVariable* variable : variables) {
                llvm::Constant* const place = llvm::ConstantExpr::getInBoundsGetElementPtr(
                    llvm::Type::getInt8Ty(context()), whole,
                    llvm::ConstantInt::get(llvm::Type::getInt64Ty(context()), places[variable]));
                variable->replaceAllUsesWith(place);
                variable->eraseFromParent();
            }
        if (is_cleared)
            name_local_memory(is_large ? nullptr : whole);
        // __local arguments count from the kernel's own local memory, and begin at the next aligned place.
        const uint64_t begin =
            result_.dynamic_local_bytes != 0 ? 0 : Alignment{local_memory_alignment}.round_up(result_.local_bytes);
        if (llvm::Function* const function = module_.getFunction(dynamic_begin_function)) {
            for (llvm::CallInst* call : calls_of(*function)) {
                call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), begin));
                call->eraseFromParent();
            }
            function->eraseFromParent();
        }
    }

    // A variable of the kernel's own in local memory.
    llvm::GlobalVariable& local_variable(uint64_t bytes, const char* name) {
        auto* const type = llvm::ArrayType::get(llvm::Type::getInt8Ty(context()), bytes);
        return *new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                         llvm::UndefValue::get(type), name, nullptr, llvm::GlobalValue::NotThreadLocal,
                                         nvptx_local_space);
    }

    // Where local memory is, for the kernel that clears it: its own, if any, and that of the launch, if any.
    void name_local_memory(llvm::GlobalVariable* own) {
        const auto answer = [&](const char* name, auto value_of) {
            if (llvm::Function* const function = module_.getFunction(name))
                for (llvm::CallInst* call : calls_of(*function)) {
                    llvm::IRBuilder<> at(call);
                    call->replaceAllUsesWith(value_of(at));
                    call->eraseFromParent();
                }
        };
        const auto begin_of = [&](llvm::GlobalVariable* memory) {
            return [memory](llvm::IRBuilder<>& at) -> llvm::Value* {
                llvm::PointerType* const type = at.getPtrTy(nvptx_local_space);
                return memory != nullptr ? static_cast<llvm::Value*>(memory) : llvm::PoisonValue::get(type);
            };
        };
        answer(own_local_memory_function, begin_of(own));
        answer(own_local_bytes_function, [&](llvm::IRBuilder<>& at) -> llvm::Value* {
            return at.getInt32(own != nullptr ? static_cast<uint32_t>(result_.local_bytes) : 0);
        });
        answer(launch_local_memory_function, begin_of(dynamic_));
        answer(launch_local_bytes_function, [&](llvm::IRBuilder<>& at) -> llvm::Value* {
            return dynamic_ != nullptr ? at.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_dynamic_smem_size, {})
                                       : static_cast<llvm::Value*>(at.getInt32(0));
        });
    }

    llvm::Module& module_;
    llvm::Function& kernel_;
    const KernelInfo& info_;
    const std::optional<WorkGroups>& groups_;
    llvm::Function* entry_ = nullptr;
    llvm::GlobalVariable* dynamic_ = nullptr;
    std::optional<WorkItems> items_;
    KernelEntry result_;
};

}  // namespace

bool has_image(const KernelInfo& info) {
    return llvm::any_of(info.arguments,
                        [](const KernelArgument& argument) { return argument.kind == ArgumentKind::image; });
}

Result<KernelEntry> make_kernel_entry(llvm::Function& kernel, const KernelInfo& info,
                                      const std::optional<WorkGroups>& groups) {
    return Entry{kernel, info, groups}.make();
}

}  // namespace polder::compiler
