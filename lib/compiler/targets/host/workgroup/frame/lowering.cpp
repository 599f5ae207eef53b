// The steps of lower_kernel, in order: create the function with the ABI's parameters; load the arguments (class Frame); call the
// kernel and inline it with its callees; replace the work-item functions; replace the __local variables.
#include "lowering.h"

#include "abi.h"
#include "inliner.h"
#include "targets/host/workgroup/work_items/sub_group_functions.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"
#include "uniform_calls.h"
#include "usual_launches.h"

#include <algorithm>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Support/Alignment.h>

namespace polder::compiler::workgroup {

namespace {

// A limit above any device's maximum. It is the range of local ids, from which LLVM knows that sums of ids do not overflow.
constexpr uint64_t local_size_max = uint64_t{1} << 31;

unsigned sub_group_size(const llvm::Function& kernel, const WorkGroupOptions& options) {
    if (const llvm::MDNode* required = kernel.getMetadata("intel_reqd_sub_group_size"))
        return static_cast<unsigned>(
            llvm::mdconst::extract<llvm::ConstantInt>(required->getOperand(0))->getLimitedValue(UINT32_MAX));
    return options.sub_group_size;
}

std::optional<std::array<uint64_t, 3>> required_local_size(const llvm::Function& kernel) {
    const llvm::MDNode* required = kernel.getMetadata("reqd_work_group_size");
    if (!required)
        return std::nullopt;
    std::array<uint64_t, 3> size{1, 1, 1};
    for (unsigned d = 0; d < std::min(3U, required->getNumOperands()); ++d)
        size[d] = llvm::mdconst::extract<llvm::ConstantInt>(required->getOperand(d))->getZExtValue();
    return size;
}

// Emits, at the end of the prologue, the loads of values that are the same for all work-items.
class Frame {
public:
    Frame(llvm::Function& function, llvm::BasicBlock& prologue, std::optional<std::array<uint64_t, 3>> local_size,
          WorkGroupOptions::Ends ends, unsigned sub_group_size, bool are_launches_usual)
        : function_(function), builder_(prologue.getTerminator()), constant_local_size_(local_size),
          sub_group_size_(sub_group_size), are_launches_usual_(are_launches_usual && !local_size) {
        const bool is_whole = ends == WorkGroupOptions::Ends::whole;
        for (unsigned d = 0; d < 3; ++d) {
            local_size_[d] = constant_local_size_
                                 ? static_cast<llvm::Value*>(builder_.getInt64((*constant_local_size_)[d]))
                                 : context_word(abi::local_size, d);
            if (constant_local_size_ && (is_whole || (*constant_local_size_)[d] == 1))
                actual_size_[d] = local_size_[d];
            global_size_[d] = context_word(abi::global_size, d);
            group_id_[d] = load_word(function.getArg(abi::group_id), uint64_t{8} * d);
            llvm::Value* before = builder_.CreateMul(group_id_[d], local_size_[d], "", true, true);
            llvm::Value* rest = builder_.CreateSub(global_size_[d], before, "", true, true);
            if (!actual_size_[d])
                actual_size_[d] = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, local_size_[d], rest);
            group_base_[d] = builder_.CreateAdd(before, context_word(abi::global_offset, d), "", true, true);
            if (are_launches_usual_)  // so that the vectorizer need not check that ids are small
                group_base_[d] = builder_.CreateAnd(group_base_[d], usual_ids_end - 1);
        }
    }

    [[nodiscard]] llvm::IRBuilder<>& builder() { return builder_; }
    [[nodiscard]] const Extent& local_size() const { return local_size_; }
    [[nodiscard]] const Extent& actual_size() const { return actual_size_; }
    [[nodiscard]] const Extent& first_id() const { return group_base_; }
    // Not when the size of work-groups is known.
    [[nodiscard]] bool are_launches_usual() const { return are_launches_usual_; }

    llvm::Value* argument(const llvm::Argument& parameter, const ArgumentSlot& slot) {
        llvm::Value* address = byte_address(function_.getArg(abi::args), slot.offset);
        if (parameter.hasByValAttr() || slot.kind == ArgumentSlot::Kind::image)
            return cast(address, parameter.getType());
        if (slot.kind == ArgumentSlot::Kind::local_pointer) {
            llvm::Value* offset = invariant_load(builder_.getInt64Ty(), address, slot.offset);
            return cast(byte_address(function_.getArg(abi::local_memory), offset), parameter.getType());
        }
        llvm::LoadInst* const value = invariant_load(parameter.getType(), address, slot.offset);
        // Copies of bytes look for words. More than that could only make accesses fail for programs that have more luck than alignment.
        constexpr uint64_t word = 4;
        if (const auto alignment = parameter.getParamAlign(); alignment && parameter.getType()->isPointerTy())
            value->setMetadata(llvm::LLVMContext::MD_align,
                               llvm::MDNode::get(value->getContext(), llvm::ConstantAsMetadata::get(builder_.getInt64(
                                                                          std::min(alignment->value(), word)))));
        return value;
    }

    llvm::Value* local_variable(uint64_t offset, llvm::Type* pointer) {
        return cast(byte_address(function_.getArg(abi::local_memory), offset), pointer);
    }

    // The result of a call to `which` for the constant dimension `d`, computed at `at`.
    llvm::Value* answer(llvm::IRBuilder<>& at, WorkItemFunction which, unsigned d) {
        const bool is_size = which == WorkItemFunction::global_size || which == WorkItemFunction::local_size ||
                             which == WorkItemFunction::enqueued_local_size || which == WorkItemFunction::num_groups;
        if (d > 2)
            return at.getInt64(is_size ? 1 : 0);
        switch (which) {
        case WorkItemFunction::global_size: return global_size_[d];
        case WorkItemFunction::local_size: return actual_size_[d];
        case WorkItemFunction::enqueued_local_size: return local_size_[d];
        case WorkItemFunction::local_id: return local_id(at, d);
        case WorkItemFunction::global_id: return at.CreateAdd(group_base_[d], local_id(at, d), "", true, true);
        case WorkItemFunction::num_groups: return context_word(abi::num_groups, d);
        case WorkItemFunction::group_id: return group_id_[d];
        case WorkItemFunction::global_offset: return context_word(abi::global_offset, d);
        default: return nullptr;
        }
    }

    llvm::Value* answer(llvm::IRBuilder<>& at, WorkItemFunction which, llvm::Value* dimension) {
        if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(dimension))
            return answer(at, which, static_cast<unsigned>(std::min<uint64_t>(constant->getZExtValue(), 3)));
        llvm::Value* result = answer(at, which, 3);
        for (unsigned d = 0; d < 3; ++d)
            result = at.CreateSelect(at.CreateICmpEQ(dimension, llvm::ConstantInt::get(dimension->getType(), d)),
                                     answer(at, which, d), result);
        return result;
    }

    llvm::Value* work_dim() {
        return invariant_load(builder_.getInt32Ty(), byte_address(function_.getArg(abi::context), abi::work_dim),
                              abi::work_dim);
    }

    llvm::Value* local_linear_id(llvm::IRBuilder<>& at) {
        llvm::Value* id = local_id(at, 2);
        for (unsigned d : {1U, 0U})
            id = at.CreateAdd(at.CreateMul(id, actual_size_[d], "", true, true), local_id(at, d), "", true, true);
        return id;
    }

    // 0 for the work-item whose local linear id is 0. Unlike this id, it needs no ids of rows, for which there would be more loops.
    llvm::Value* place(llvm::IRBuilder<>& at) { return numbered(at, place_dimension, local_size_max); }

    llvm::Value* global_linear_id(llvm::IRBuilder<>& at) {
        const auto without_offset = [&](unsigned d) {
            llvm::Value* base = builder_.CreateMul(group_id_[d], local_size_[d], "", true, true);
            return at.CreateAdd(base, local_id(at, d), "", true, true);
        };
        llvm::Value* id = without_offset(2);
        for (unsigned d : {1U, 0U})
            id = at.CreateAdd(at.CreateMul(id, global_size_[d]), without_offset(d));
        return id;
    }

    llvm::Value* sub_group_width() { return builder_.getInt32(sub_group_size_); }
    llvm::Value* sub_group_lane(llvm::IRBuilder<>& at) { return numbered(at, lane_dimension, sub_group_size_); }
    llvm::Value* sub_group_number(llvm::IRBuilder<>& at) { return numbered(at, sub_group_dimension, local_size_max); }

private:
    static llvm::Value* numbered(llvm::IRBuilder<>& at, unsigned dimension, uint64_t limit) {
        llvm::CallInst* call = at.CreateCall(local_id_intrinsic(*at.GetInsertBlock()->getModule(), dimension));
        call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(64, 0), llvm::APInt(64, limit)));
        return call;
    }

    llvm::Value* local_id(llvm::IRBuilder<>& at, unsigned d) {
        if (constant_local_size_ && (*constant_local_size_)[d] == 1)
            return at.getInt64(0);
        llvm::CallInst* call = at.CreateCall(local_id_intrinsic(*function_.getParent(), d));
        const uint64_t limit = constant_local_size_ ? (*constant_local_size_)[d] : local_size_max;
        call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(64, 0), llvm::APInt(64, limit)));
        return call;
    }

    llvm::Value* cast(llvm::Value* pointer, llvm::Type* type) {
        return pointer->getType() == type ? pointer : builder_.CreateAddrSpaceCast(pointer, type);
    }
    llvm::Value* byte_address(llvm::Value* base, uint64_t offset) {
        return offset ? builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), base, offset) : base;
    }
    llvm::Value* byte_address(llvm::Value* base, llvm::Value* offset) {
        return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), base, offset);
    }
    llvm::LoadInst* invariant_load(llvm::Type* type, llvm::Value* address, uint64_t offset) {
        const llvm::Align alignment = llvm::commonAlignment(llvm::Align(abi::args_alignment), offset);
        llvm::LoadInst* load = builder_.CreateAlignedLoad(type, address, alignment);
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(load->getContext(), {}));
        return load;
    }
    // A word that the launch always sets. `noundef` says so: without it LLVM would freeze ids, and look for a proof in each pass.
    llvm::Value* load_word(llvm::Value* base, uint64_t offset) {
        llvm::LoadInst* load =
            builder_.CreateAlignedLoad(builder_.getInt64Ty(), byte_address(base, offset), llvm::Align(8));
        llvm::MDNode* const no_operands = llvm::MDNode::get(load->getContext(), {});
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, no_operands);
        load->setMetadata(llvm::LLVMContext::MD_noundef, no_operands);
        return load;
    }
    llvm::Value* context_word(uint64_t member, unsigned d) {
        return load_word(function_.getArg(abi::context), member + uint64_t{8} * d);
    }

    llvm::Function& function_;
    llvm::IRBuilder<> builder_;
    std::optional<std::array<uint64_t, 3>> constant_local_size_;
    unsigned sub_group_size_;
    bool are_launches_usual_;
    Extent local_size_{}, global_size_{}, group_id_{}, actual_size_{}, group_base_{};
};

llvm::Function* create_frame_function(llvm::Module& module, llvm::StringRef name) {
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* pointer = llvm::PointerType::getUnqual(context);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                         llvm::SmallVector<llvm::Type*>(abi::parameter_count, pointer), false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    function->setDSOLocal(true);
    function->setDoesNotThrow();
    for (unsigned i = 0; i < abi::parameter_count; ++i) {
        function->addParamAttr(i, llvm::Attribute::NoUndef);
        // Not yet for local memory and scratch, which other work-items write: with it LLVM would move accesses across a barrier.
        if (i < abi::local_memory)
            function->addParamAttr(i, llvm::Attribute::NoAlias);
    }
    function->addDereferenceableParamAttr(abi::context, abi::context_bytes);
    function->addDereferenceableParamAttr(abi::group_id, 24);
    for (unsigned i : {abi::args, abi::context, abi::group_id})
        function->addParamAttr(i, llvm::Attribute::ReadOnly);
    function->getArg(abi::args)->setName("args");
    function->getArg(abi::context)->setName("context");
    function->getArg(abi::group_id)->setName("group_id");
    function->getArg(abi::local_memory)->setName("local_memory");
    function->getArg(abi::scratch)->setName("scratch");
    const llvm::Attribute alignment = llvm::Attribute::getWithAlignment(context, llvm::Align(local_memory_alignment));
    function->addParamAttr(abi::local_memory, alignment);
    return function;
}

bool is_compared_with_zero(const llvm::CallInst& number) {
    return llvm::all_of(number.users(), [](const llvm::User* user) {
        const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(user);
        return compare && compare->isEquality() &&
               llvm::PatternMatch::match(compare->getOperand(1), llvm::PatternMatch::m_Zero());
    });
}

// Replaces the calls of work-item functions in `function`, except for those whose result is known only later.
struct UsedFunctions {
    bool collective_slots = false;
    bool sub_groups = false;
};
UsedFunctions lower_work_item_calls(llvm::Function& function, Frame& frame) {
    llvm::SmallVector<std::pair<llvm::CallInst*, WorkItemFunction>> calls;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->getCalledFunction())
            if (const auto which = work_item_function(*call->getCalledFunction()))
                calls.emplace_back(call, *which);

    UsedFunctions used;
    for (auto [call, which] : calls) {
        if (which >= WorkItemFunction::sub_group_lane)
            used.sub_groups = true;
        if (which == WorkItemFunction::scratch_bytes || which == WorkItemFunction::sub_group_operation)
            continue;
        llvm::IRBuilder<> at(call);
        llvm::Value* answer = nullptr;
        switch (which) {
        case WorkItemFunction::barrier: at.CreateCall(barrier_intrinsic(*function.getParent())); break;
        case WorkItemFunction::work_dim: answer = frame.work_dim(); break;
        case WorkItemFunction::local_linear_id:
            answer = is_compared_with_zero(*call) ? frame.place(at) : frame.local_linear_id(at);
            break;
        case WorkItemFunction::global_linear_id: answer = frame.global_linear_id(at); break;
        case WorkItemFunction::launch_context: answer = function.getArg(abi::context); break;
        case WorkItemFunction::local_memory: answer = function.getArg(abi::local_memory); break;
        case WorkItemFunction::scratch_memory: answer = function.getArg(abi::scratch); break;
        case WorkItemFunction::collective_slots:
            answer = function.getArg(abi::scratch);
            used.collective_slots = true;
            break;
        case WorkItemFunction::sub_group_lane: answer = frame.sub_group_lane(at); break;
        case WorkItemFunction::sub_group_number: answer = frame.sub_group_number(at); break;
        case WorkItemFunction::sub_group_width: answer = frame.sub_group_width(); break;
        default: answer = frame.answer(at, which, call->getArgOperand(0)); break;
        }
        if (answer && answer->getType() != call->getType()) {
            answer = answer->getType()->isPointerTy() ? at.CreateAddrSpaceCast(answer, call->getType())
                                                      : at.CreateZExtOrTrunc(answer, call->getType());
        }
        if (answer)
            call->replaceAllUsesWith(answer);
        call->eraseFromParent();
    }
    return used;
}

// Replaces the __local variables that `function` uses by addresses in local memory. Returns how many bytes they need.
uint64_t lower_local_variables(llvm::Function& function, Frame& frame) {
    llvm::SmallVector<llvm::GlobalVariable*> variables;
    llvm::SmallVector<llvm::Constant*> constants;
    for (llvm::GlobalVariable& global : function.getParent()->globals())
        if (is_local_variable(global)) {
            variables.push_back(&global);
            constants.push_back(&global);
        }
    llvm::convertUsersOfConstantsToInstructions(constants, &function);

    // Largest alignment first: no padding.
    const llvm::DataLayout& layout = function.getParent()->getDataLayout();
    const auto alignment_of = [&](const llvm::GlobalVariable* variable) {
        return std::max(variable->getAlign().valueOrOne(), layout.getPrefTypeAlign(variable->getValueType()));
    };
    llvm::DenseMap<const llvm::GlobalVariable*, size_t> place;
    for (size_t i = 0; i < variables.size(); ++i)
        place[variables[i]] = i;
    llvm::sort(variables, [&](auto* a, auto* b) {
        return std::pair(alignment_of(b), place[a]) < std::pair(alignment_of(a), place[b]);
    });
    uint64_t bytes = 0;
    for (llvm::GlobalVariable* variable : variables) {
        const auto in_function = [&](llvm::Use& use) {
            const auto* user = llvm::dyn_cast<llvm::Instruction>(use.getUser());
            return user && user->getFunction() == &function;
        };
        if (llvm::none_of(variable->uses(), in_function))
            continue;
        bytes = llvm::alignTo(bytes, alignment_of(variable));
        llvm::Value* address = frame.local_variable(bytes, variable->getType());
        variable->replaceUsesWithIf(address, in_function);
        bytes += layout.getTypeAllocSize(variable->getValueType());
    }
    return bytes;
}

// A call that uses the sizes, so that no pass removes them.
llvm::CallInst* keep_sizes(Frame& frame) {
    llvm::IRBuilder<>& at = frame.builder();
    llvm::SmallVector<llvm::Value*> sizes(frame.local_size().begin(), frame.local_size().end());
    sizes.append(frame.actual_size().begin(), frame.actual_size().end());
    if (frame.are_launches_usual())
        sizes.append(frame.first_id().begin(), frame.first_id().end());
    llvm::Module& module = *at.GetInsertBlock()->getModule();
    const llvm::SmallVector<llvm::Type*> types(sizes.size(), at.getInt64Ty());
    auto* type = llvm::FunctionType::get(at.getVoidTy(), types, false);
    llvm::CallInst* keep = at.CreateCall(module.getOrInsertFunction("polder.sizes", type), sizes);
    keep->setOnlyAccessesInaccessibleMemory();
    keep->setDoesNotThrow();
    keep->addFnAttr(llvm::Attribute::WillReturn);
    return keep;
}

}  // namespace

llvm::Expected<LoweredKernel> lower_kernel(llvm::Function& kernel, const WorkGroupOptions& options) {
    if (options.arguments.size() != kernel.arg_size())
        return llvm::createStringError("kernel '" + kernel.getName() + "': argument slots do not match its parameters");
    if (!is_sub_group_size(sub_group_size(kernel, options)))
        return llvm::createStringError("kernel '" + kernel.getName() +
                                       "': a sub-group has 4, 8, 16, 32 or 64 work-items, not " +
                                       llvm::Twine(sub_group_size(kernel, options)));
    llvm::Function* function = create_frame_function(*kernel.getParent(), options.name);
    auto* prologue = llvm::BasicBlock::Create(function->getContext(), "prologue", function);
    auto* body = llvm::BasicBlock::Create(function->getContext(), "body", function);
    llvm::IRBuilder<>(prologue).CreateBr(body);
    Frame frame(*function, *prologue, options.local_size ? options.local_size : required_local_size(kernel),
                options.ends, sub_group_size(kernel, options), has_usual_launches(kernel));
    if (frame.are_launches_usual())
        function->addFnAttr(kernel.getFnAttribute(usual_launches_attribute));

    llvm::SmallVector<llvm::Value*> arguments;
    for (llvm::Argument& parameter : kernel.args())
        arguments.push_back(frame.argument(parameter, options.arguments[parameter.getArgNo()]));
    llvm::IRBuilder<> in_body(body);
    llvm::CallInst* call = in_body.CreateCall(&kernel, arguments);
    call->setCallingConv(kernel.getCallingConv());
    call->setAttributes(llvm::AttributeList());
    for (llvm::Argument& parameter : kernel.args())
        if (parameter.hasByValAttr())
            call->addParamAttr(parameter.getArgNo(),
                               kernel.getParamAttribute(parameter.getArgNo(), llvm::Attribute::ByVal));
    in_body.CreateRetVoid();

    for (const Callees which : {Callees::own, Callees::all}) {
        if (llvm::Error error = inline_callees(*function, which)) {
            function->eraseFromParent();
            return error;
        }
        if (which == Callees::own)
            call_once(*function);
    }
    const UsedFunctions used = lower_work_item_calls(*function, frame);
    const uint64_t local_bytes = lower_local_variables(*function, frame);
    return LoweredKernel{.function = function,
                         .prologue = prologue,
                         .sizes = keep_sizes(frame),
                         .local_bytes = local_bytes,
                         .uses_collective_slots = used.collective_slots,
                         .sub_group_size = used.sub_groups ? sub_group_size(kernel, options) : 0};
}

void restore_prologue(LoweredKernel& kernel) {
    for (unsigned d = 0; d < 3; ++d) {
        kernel.local_size[d] = kernel.sizes->getArgOperand(d);
        kernel.actual_size[d] = kernel.sizes->getArgOperand(3 + d);
        if (kernel.sizes->arg_size() > 6)
            kernel.first_id[d] = kernel.sizes->getArgOperand(6 + d);
    }
    llvm::BasicBlock& entry = *kernel.sizes->getParent();
    llvm::Instruction* first = entry.getTerminator();
    for (llvm::Instruction* next = first; next != kernel.sizes; next = next->getPrevNode())
        if (!llvm::isa<llvm::AllocaInst>(next))
            first = next;
    for (llvm::Instruction& instruction :
         llvm::make_early_inc_range(llvm::make_range(first->getIterator(), entry.end())))
        if (llvm::isa<llvm::AllocaInst>(instruction))
            instruction.moveBefore(entry.begin());
    kernel.sizes->eraseFromParent();
    kernel.sizes = nullptr;
    entry.splitBasicBlock(first->getIterator(), "body");
    entry.setName("prologue");
    kernel.prologue = &entry;
}

}  // namespace polder::compiler::workgroup
