// call_for_lanes() makes a function with a loop over the lanes that calls the callee. Vectors of arguments and of results are in memory; values that
// are the same for all lanes, or have a constant step, are parameters, so that branches on them stay branches and addresses stay rows. There is one such
// function for each callee, number of lanes and shape of the arguments, with and without a mask.
//
// vectorize_functions() inlines the callee into this loop and makes its iterations lanes, like the work-items of a sub-group. What the callee calls, in
// turn, becomes such a function.
#include "vector_functions.h"

#include "lane_code.h"
#include "lane_cost.h"
#include "skipped_code.h"
#include "targets/host/workgroup/frame/inliner.h"
#include "targets/host/workgroup/frame/simplify.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"
#include "values_in_memory.h"
#include "vectorizer.h"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace polder::compiler::workgroup {

namespace {

// Of functions that may have a vector form: the costs of one call without lanes, and with one lane more, in instructions.
constexpr const char* costs_attribute = "polder-costs-of-call";
// Of the functions of call_for_lanes() that are loops over the lanes still.
constexpr const char* lanes_attribute = "polder-call-for-lanes";
// Of all functions of call_for_lanes(). In SPIR-V a program's own function may have the name of one of them.
constexpr const char* made_attribute = "polder-made-for-lanes";

// Longer functions take too long to compile in lanes, as longer kernels do.
constexpr unsigned vector_instructions_max = 12000;

bool is_plain_call(const llvm::CallBase& call) {
    const llvm::Function* const callee = call.getCalledFunction();
    return callee != nullptr && !call.isInlineAsm() && !call.hasOperandBundles() && !work_item_function(*callee);
}

// Whether nothing in `function` waits for other work-items or needs an order of the lanes.
bool is_plain(const llvm::Function& function) {
    return llvm::all_of(llvm::instructions(function), [](const llvm::Instruction& instruction) {
        const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        return !instruction.isAtomic() && !instruction.isVolatile() &&
               !llvm::isa<llvm::IndirectBrInst, llvm::InvokeInst>(instruction) &&
               (call == nullptr || is_plain_call(*call));
    });
}

bool ends_unreachably(const llvm::BasicBlock& block) { return llvm::isa<llvm::UnreachableInst>(block.getTerminator()); }

bool has_plain_parameters(const llvm::Function& function) {
    const llvm::DataLayout& layout = function.getDataLayout();
    llvm::Type& result = *function.getReturnType();
    return !function.isVarArg() && (result.isVoidTy() || is_array_element(result, layout)) &&
           llvm::all_of(function.args(),
                        [&](const llvm::Argument& one) { return is_array_element(*one.getType(), layout); });
}

bool may_have_vector_form(const llvm::Function& function) {
    return has_plain_parameters(function) && is_plain(function);
}

// The defined functions that `root` reaches without a cold one, callees first. Recursive ones are left out.
llvm::SmallVector<llvm::Function*> callees_first(llvm::Function& root) {
    llvm::SmallPtrSet<llvm::Function*, 16> reached{&root};
    llvm::SmallVector<llvm::Function*> todo{&root};
    while (!todo.empty())
        for (llvm::Instruction& instruction : llvm::instructions(*todo.pop_back_val()))
            if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
                call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration() &&
                !call->getCalledFunction()->hasFnAttribute(llvm::Attribute::Cold) &&
                reached.insert(call->getCalledFunction()).second)
                todo.push_back(call->getCalledFunction());
    llvm::SmallVector<llvm::Function*> result;
    llvm::CallGraph graph(*root.getParent());
    for (auto component = llvm::scc_begin(&graph); !component.isAtEnd(); ++component)
        if (llvm::Function* const function = component->front()->getFunction();
            component->size() == 1 && !component.hasCycle() && function != nullptr && function != &root &&
            reached.contains(function))
            result.push_back(function);
    return result;
}

// The costs of one call: of one work-item, and of each lane in vector code.
struct FunctionCosts {
    double one = 0, lane = 0;
};

FunctionCosts costs_of(llvm::Instruction& instruction, unsigned register_words) {
    constexpr double apart = 2, repeated = 3;
    constexpr unsigned word = 32;
    if (llvm::isa<llvm::PHINode, llvm::GetElementPtrInst>(instruction) || instruction.isTerminator() ||
        instruction.isLifetimeStartOrEnd())
        return {};
    if (is_call_for_lanes(instruction, 1)) {
        const CallCosts costs = costs_of_call(instruction, 1);
        return {costs.one_by_one, costs.lanes};
    }
    if (const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction))
        return {1, llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address)) ? 1.0 / register_words : apart};
    if (!is_vector_instruction(instruction) || instruction.isIntDivRem())
        return {1, repeated};
    return {1, std::max(instruction.getType()->getScalarSizeInBits(), word) / double{word} / register_words};
}

// Inlines what `function` calls, and simplifies it as kernels are. False when it cannot have a vector form.
bool become_plain(llvm::Function& function, llvm::TargetMachine* target) {
    if (!may_have_vector_form(function))
        return false;
    if (llvm::Error error = inline_callees(function)) {
        llvm::consumeError(std::move(error));
        return false;
    }
    simplify_body(function, target);
    // Before, Clang's switch behind a `break` out of a block with variables has such an end.
    return is_plain(function) && llvm::none_of(function, ends_unreachably);
}

void mark(llvm::Function& function, unsigned register_words) {
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    FunctionCosts all;
    for (llvm::BasicBlock& block : function) {
        const double weight = weight_of_block(loops.getLoopDepth(&block));
        for (llvm::Instruction& instruction : block) {
            const FunctionCosts costs = costs_of(instruction, register_words);
            all.one += weight * costs.one;
            all.lane += weight * costs.lane;
        }
    }
    function.addFnAttr(costs_attribute, std::to_string(all.one) + " " + std::to_string(all.lane));
}

}  // namespace

void call_long_functions(llvm::Function& kernel, llvm::TargetMachine* target) {
    constexpr unsigned long_instructions = 500;
    for (llvm::Function* const function : callees_first(kernel)) {
        if (function->hasNUsesOrMore(2) && become_plain(*function, target) &&
            function->getInstructionCount() >= long_instructions) {
            function->addFnAttr(called_attribute);
            function->removeFnAttr(llvm::Attribute::AlwaysInline);
        }
    }
}

void prepare_vector_functions(llvm::Function& kernel, unsigned register_words, llvm::TargetMachine* target) {
    for (llvm::Function* const function : callees_first(kernel))
        if (become_plain(*function, target) && function->getInstructionCount() <= vector_instructions_max)
            mark(*function, register_words);
}

bool is_call_for_lanes(const llvm::Instruction& instruction, unsigned lanes) {
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return call != nullptr && is_plain_call(*call) && call->getCalledFunction()->hasFnAttribute(costs_attribute) &&
           lanes <= lanes_in_memory_max;
}

CallCosts costs_of_call(const llvm::Instruction& call, unsigned lanes) {
    const llvm::Function& callee = *llvm::cast<llvm::CallInst>(call).getCalledFunction();
    const auto [one, lane] = callee.getFnAttribute(costs_attribute).getValueAsString().split(' ');
    FunctionCosts costs;
    if (one.getAsDouble(costs.one) || lane.getAsDouble(costs.lane))
        return {};
    constexpr double passing = 2;  // stores and loads of the arguments of one lane, and the call
    return {(costs.lane + passing) * lanes, (costs.one + passing) * lanes};
}

namespace {

// What a function of call_for_lanes() is made from.
class LaneFunction {
public:
    LaneFunction(const llvm::CallInst& call, unsigned lanes, llvm::ArrayRef<LaneArgument> arguments, bool is_masked)
        : call_(call), callee_(*call.getCalledFunction()), places_(call, lanes), lanes_(lanes), arguments_(arguments),
          is_masked_(is_masked), context_(call.getContext()), at_(context_) {}

    // Its parameters: the address of the vectors; the mask's bits, if it has one; the values of arguments that are no vectors.
    llvm::Function* get() {
        llvm::Module& module = *callee_.getParent();
        std::string name = callee_.getName().str() + ".for" + std::to_string(lanes_) + (is_masked_ ? ".masked" : "");
        llvm::SmallVector<llvm::Type*> types{at_.getPtrTy()};
        if (is_masked_)
            types.push_back(at_.getInt64Ty());
        for (const LaneArgument& argument : arguments_) {
            name += '.';
            name += argument.step ? std::to_string(*argument.step) : "v";
            if (argument.step)
                types.push_back(argument.value->getType());
        }
        if (llvm::Function* const made = module.getFunction(name); made && made->hasFnAttribute(made_attribute))
            return made;
        auto* const type = llvm::FunctionType::get(at_.getVoidTy(), types, false);
        auto* const function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
        function->setDSOLocal(true);
        function->addFnAttr(llvm::Attribute::NoUnwind);
        if (callee_.hasFnAttribute(llvm::Attribute::NoInline))
            function->addFnAttr(llvm::Attribute::NoInline);
        function->addFnAttr(lanes_attribute, std::to_string(lanes_));
        function->addFnAttr(made_attribute);
        for (const char* kept : {"target-cpu", "target-features", "prefer-vector-width"})
            if (callee_.hasFnAttribute(kept))
                function->addFnAttr(callee_.getFnAttribute(kept));
        function->addParamAttr(0, llvm::Attribute::NoAlias);
        function->addParamAttr(0, llvm::Attribute::getWithCaptureInfo(context_, llvm::CaptureInfo::none()));
        function->addParamAttr(0, llvm::Attribute::getWithAlignment(context_, llvm::Align(values_align)));
        define(*function);
        return function;
    }

    [[nodiscard]] const ValuesOfCall& places() const { return places_; }

private:
    void define(llvm::Function& function) {
        const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context_, name, &function); };
        at_.SetInsertPoint(block("entry"));
        llvm::BasicBlock* const after = block("done");
        loop_over_lanes(at_, lanes_, is_masked_ ? function.getArg(1) : nullptr, *after,
                        [&](llvm::Value& lane) { call_for(function, lane); });
        at_.SetInsertPoint(after);
        at_.CreateRetVoid();
    }

    void call_for(llvm::Function& function, llvm::Value& lane) {
        llvm::Value& memory = *function.getArg(0);
        unsigned parameter = is_masked_ ? 2 : 1;
        llvm::SmallVector<llvm::Value*> values;
        for (const auto [argument, operand, place] : llvm::zip(arguments_, call_.args(), places_.arguments)) {
            llvm::Type& type = *operand->getType();
            values.push_back(argument.step ? moved(*function.getArg(parameter++), *argument.step, lane)
                                           : at_.CreateLoad(&type, address_of_lane(at_, memory, place, type, lane)));
        }
        llvm::CallInst* const call = at_.CreateCall(call_.getFunctionType(), &callee_, values);
        call->setCallingConv(callee_.getCallingConv());
        call->setAttributes(call_.getAttributes());
        if (!call->getType()->isVoidTy())
            at_.CreateStore(call, address_of_lane(at_, memory, places_.result, *call->getType(), lane));
    }

    llvm::Value* moved(llvm::Value& first, int64_t step, llvm::Value& lane) {
        if (step == 0)
            return &first;
        llvm::Value* const distance = at_.CreateMul(&lane, at_.getInt64(static_cast<uint64_t>(step)));
        if (first.getType()->isPointerTy())
            return at_.CreateGEP(at_.getInt8Ty(), &first, distance);
        return at_.CreateAdd(&first, at_.CreateZExtOrTrunc(distance, first.getType()));
    }

    const llvm::CallInst& call_;
    llvm::Function& callee_;
    const ValuesOfCall places_;
    const unsigned lanes_;
    const llvm::ArrayRef<LaneArgument> arguments_;
    const bool is_masked_;
    llvm::LLVMContext& context_;
    llvm::IRBuilder<> at_;
};

// Whether `function`, which calls its callee in a loop over lanes, has become vector code.
bool vectorize(llvm::Function& function, const LaneTarget& target, Lanes wanted,
               llvm::FunctionAnalysisManager& analyses) {
    unsigned lanes = 0;
    if (function.getFnAttribute(lanes_attribute).getValueAsString().getAsInteger(10, lanes))
        return false;
    llvm::ValueToValueMapTy copies;
    llvm::Function* const made = llvm::CloneFunction(&function, copies);
    made->removeFnAttr(lanes_attribute);
    llvm::InlineFunctionInfo info;
    llvm::CallInst* const call = callee_call_in(*made);
    bool is_done = call != nullptr && llvm::InlineFunction(*call, info).isSuccess();
    if (is_done) {
        put_variables_into_registers(*made, analyses);
        const LaneTarget* const prices = wanted == Lanes::where_they_pay ? &target : nullptr;
        is_done = vectorize_one_vector(*made, {lanes, target.permutes}, analyses, prices).empty();
    }
    if (!is_done) {
        analyses.clear(*made, made->getName());
        made->eraseFromParent();
        return false;
    }
    made->takeName(&function);
    function.replaceAllUsesWith(made);
    function.eraseFromParent();
    return true;
}

}  // namespace

llvm::Value* call_for_lanes(llvm::IRBuilder<>& builder, const llvm::CallInst& call, unsigned lanes,
                            llvm::ArrayRef<LaneArgument> arguments, llvm::Value* mask, llvm::AllocaInst*& memory) {
    LaneFunction function(call, lanes, arguments, mask != nullptr);
    const ValuesOfCall& places = function.places();
    memory = memory_for(std::max<uint64_t>(places.bytes, 1), *builder.GetInsertBlock()->getParent(), memory);
    const auto address = [&](uint64_t place) {
        return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), memory, place);
    };
    const llvm::Align align(values_align);
    llvm::SmallVector<llvm::Value*> values{memory};
    if (mask != nullptr)
        values.push_back(mask_bits(builder, *mask));
    for (const auto [argument, place] : llvm::zip(arguments, places.arguments))
        if (argument.step)
            values.push_back(argument.value);
        else
            builder.CreateAlignedStore(argument.value, address(place), align);
    builder.CreateCall(function.get(), values);
    if (call.getType()->isVoidTy())
        return nullptr;
    return builder.CreateAlignedLoad(llvm::FixedVectorType::get(call.getType(), lanes), address(places.result), align);
}

std::set<std::string> vectorize_functions(llvm::Module& module, const LaneTarget& target, Lanes lanes,
                                          llvm::FunctionAnalysisManager& analyses) {
    std::set<std::string> without_lanes;
    const auto next = [&]() -> llvm::Function* {
        for (llvm::Function& function : module)
            if (function.hasFnAttribute(lanes_attribute))
                return &function;
        return nullptr;
    };
    while (llvm::Function* const function = next()) {
        const llvm::CallInst* const call = callee_call_in(*function);
        const std::string name = call ? call->getCalledFunction()->getName().str() : "";
        if (!vectorize(*function, target, lanes, analyses)) {
            function->removeFnAttr(lanes_attribute);
            without_lanes.insert(name);
        }
    }
    return without_lanes;
}

}  // namespace polder::compiler::workgroup
