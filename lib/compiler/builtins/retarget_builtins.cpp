// polder-retarget-builtins [--target nvptx] LIBCLC.bc [OURS.bc...] -o OUT
//
// Makes the library of built-ins at build time. It reads libclc's nvptx64 bitcode, replaces functions by those of our own
// modules (made for spir64), retargets all of it to the host (or to NVPTX), splits it into one small module for each name (all
// overloads of `sin` are in one, those of `shuffle` in one for each type of element), and writes these as a BuiltinArchive.
//
// - Names: libclc's "U3AS4" is nvptx's constant space; ours and the user's is spir64's, "U3AS2".
// - A function of ours replaces libclc's of the same name, which it can still call as `libclc.<name>`.
// - Memory attributes are inferred anew: libclc's say that reading constant memory is no access at
//   all, which would hide reads of __constant arguments from the analysis of argument uses.
// - A call of polder_image or polder_sampler is replaced by its argument (lib/kernel/cl/image.h), those of polder_close_fma and polder_whole_fma by LLVM's
//   intrinsic (lib/kernel/cl/fma.h), those of polder_scale by two (targets/host/instructions/power_scaling.h), those of polder_exponent and polder_mantissa by operations on
//   bits (targets/host/instructions/number_parts.h).
// - Functions that the work-group pass replaces (get_global_id, ...) are dropped here.
#include "analyses.h"
#include "builtin_archive.h"
#include "intrinsics.h"
#include "machine/host.h"
#include "machine/nvptx.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/FunctionAttrs.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>
#include <map>
#include <string>
#include <vector>

namespace {

using polder::compiler::AddressSpaceNumbers;
using polder::compiler::Analyses;

[[noreturn]] void stop(const std::string& message) {
    llvm::errs() << "polder-retarget-builtins: " << message << "\n";
    exit(1);
}

std::string with_spir_spaces(std::string name) {
    for (size_t at = name.find("U3AS4"); at != std::string::npos; at = name.find("U3AS4", at))
        name.replace(at, 5, "U3AS2");
    return name;
}

void rename_constant_space(llvm::Module& module) {
    for (llvm::Function& function : module)
        if (function.getName().contains("U3AS4"))
            function.setName(with_spir_spaces(function.getName().str()));
}

void forget_memory_effects(llvm::Module& module) {
    for (llvm::Function& function : module)
        if (!function.isIntrinsic() && !function.isDeclaration())
            function.removeFnAttr(llvm::Attribute::Memory);
}

std::unique_ptr<llvm::Module> read(llvm::LLVMContext& context, const std::string& path) {
    llvm::SMDiagnostic diagnostic;
    std::unique_ptr<llvm::Module> module = llvm::parseIRFile(path, diagnostic, context);
    if (!module)
        stop(path + ": " + diagnostic.getMessage().str());
    return module;
}

using RetargetFunction = void (*)(llvm::Module& module, const AddressSpaceNumbers& numbers);

// A module for the target out of one input file.
std::unique_ptr<llvm::Module> read_retargeted(llvm::LLVMContext& context, const std::string& path,
                                              RetargetFunction retarget) {
    std::unique_ptr<llvm::Module> module = read(context, path);
    const bool is_nvptx = module->getTargetTriple().isNVPTX();
    if (is_nvptx)
        rename_constant_space(*module);
    forget_memory_effects(*module);
    retarget(*module, is_nvptx ? polder::compiler::nvptx64_address_spaces : polder::compiler::spir64_address_spaces);
    if (llvm::NamedMDNode* flags = module->getModuleFlagsMetadata())
        flags->eraseFromParent();
    for (const char* name : {"llvm.ident", "nvvm.annotations", "opencl.ocl.version", "opencl.spir.version"})
        if (llvm::NamedMDNode* node = module->getNamedMetadata(name))
            node->eraseFromParent();
    return module;
}

void infer_attributes(llvm::Module& module) {
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);
    llvm::ModulePassManager passes;
    passes.addPass(llvm::createModuleToPostOrderCGSCCPassAdaptor(llvm::PostOrderFunctionAttrsPass()));
    passes.run(module, analyses.modules);
}

// The name without its parameters, which all overloads share; a name that is not mangled stays as it is.
std::string base_name(const llvm::Function& function) {
    std::string name = function.getName().str();
    llvm::ItaniumPartialDemangler demangler;
    if (demangler.partialDemangle(name.c_str()))
        return name;
    // LLVM's linker adds a suffix where two internal functions have one name. A name with a suffix, such as `_Z3addf.7`, is not mangled.
    if (!demangler.isFunction())
        stop("two input files define an internal function " + name.substr(0, name.find('.')) +
             ": every input's internal functions need names of their own");
    char* const text = demangler.getFunctionBaseName(nullptr, nullptr);
    std::string base = text;
    std::free(text);
    return base;
}

// The type of the elements of a mangled function's first parameter, without its address space: `f` of `_Z5fractDv4_fPU3AS1S_`.
std::string element_name(llvm::StringRef mangled, llvm::StringRef base) {
    llvm::StringRef rest = mangled.substr(mangled.find(base) + base.size());
    while (rest.consume_front("P") || rest.consume_front("K") || rest.consume_front("V") || rest.consume_front("U3AS"))
        rest = rest.ltrim("0123456789");
    if (rest.consume_front("Dv"))
        rest = rest.ltrim("0123456789_");
    return rest.take_front(rest.starts_with("D") ? 2 : 1).str();
}

// Reading a module takes time for each symbol in it, and each module has 2 KB besides its functions.
constexpr size_t group_size_max = 24;

using Group = std::vector<llvm::GlobalValue*>;

// Functions of halves call those of floats, for which linking may choose another form (builtins.h). It cannot where both are in one module.
std::map<std::string, Group> with_large_groups_split(const std::map<std::string, Group>& groups) {
    constexpr llvm::StringLiteral half = "Dh";
    std::map<std::string, Group> result;
    for (const auto& [base, group] : groups)
        for (llvm::GlobalValue* member : group) {
            const std::string element = element_name(member->getName(), base);
            const bool is_apart = group.size() > group_size_max || element == half;
            std::string kind = base;
            if (is_apart)
                kind.append(" of ").append(element);
            result[kind].push_back(member);
        }
    return result;
}

// The symbols that `module` defines, in groups that belong together. Tables that libclc keeps internal
// become symbols of their own, shared by the groups.
std::map<std::string, Group> groups_of(llvm::Module& module) {
    std::map<std::string, Group> groups;
    for (llvm::Function& function : module) {
        if (function.isDeclaration())
            continue;
        groups[base_name(function)].push_back(&function);
    }
    for (llvm::GlobalVariable& variable : module.globals()) {
        if (variable.isDeclaration() || variable.getName().starts_with("llvm."))
            continue;
        variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
        variable.setName("_polder_table_" + variable.getName());
        groups[variable.getName().str()].push_back(&variable);
    }
    return with_large_groups_split(groups);
}

// Copies a group into a module of its own. Symbols outside of the group that it refers to become declarations.
class GroupCopy {
public:
    GroupCopy(llvm::Module& library, const Group& group)
        : part_(std::make_unique<llvm::Module>("builtins", library.getContext())) {
        part_->setDataLayout(library.getDataLayout());
        part_->setTargetTriple(library.getTargetTriple());
        part_->setSourceFileName("");
        for (llvm::GlobalValue* member : group)
            declare(*member);
        for (llvm::GlobalValue* member : group)
            define(*member);
    }

    std::unique_ptr<llvm::Module> take() { return std::move(part_); }

private:
    void declare(llvm::GlobalValue& value) {
        if (values_.count(&value))
            return;
        if (auto* function = llvm::dyn_cast<llvm::Function>(&value)) {
            auto* copy = llvm::Function::Create(function->getFunctionType(), llvm::GlobalValue::ExternalLinkage,
                                                function->getName(), part_.get());
            copy->copyAttributesFrom(function);
            values_[&value] = copy;
        } else if (auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&value)) {
            auto* copy = new llvm::GlobalVariable(*part_, variable->getValueType(), variable->isConstant(),
                                                  llvm::GlobalValue::ExternalLinkage, nullptr, variable->getName());
            copy->copyAttributesFrom(variable);
            values_[&value] = copy;
        } else {
            stop("an alias in the library: " + value.getName().str());
        }
    }

    void declare_globals_in(const llvm::Constant& constant) {
        if (auto* global = llvm::dyn_cast<llvm::GlobalValue>(&constant))
            return declare(const_cast<llvm::GlobalValue&>(*global));
        for (const llvm::Use& operand : constant.operands())
            if (auto* inner = llvm::dyn_cast<llvm::Constant>(operand.get()))
                declare_globals_in(*inner);
    }

    void define(llvm::GlobalValue& value) {
        if (auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&value)) {
            declare_globals_in(*variable->getInitializer());
            llvm::cast<llvm::GlobalVariable>(values_[variable])
                ->setInitializer(llvm::MapValue(variable->getInitializer(), values_));
            return;
        }
        auto& function = llvm::cast<llvm::Function>(value);
        for (llvm::Instruction& instruction : llvm::instructions(function))
            for (llvm::Use& operand : instruction.operands())
                if (auto* constant = llvm::dyn_cast<llvm::Constant>(operand.get()))
                    declare_globals_in(*constant);
        auto& copy = *llvm::cast<llvm::Function>(values_[&function]);
        for (auto [from, to] : llvm::zip(function.args(), copy.args()))
            values_[&from] = &to;
        llvm::SmallVector<llvm::ReturnInst*, 4> returns;
        llvm::CloneFunctionInto(&copy, &function, values_, llvm::CloneFunctionChangeType::DifferentModule, returns);
        copy.setLinkage(llvm::GlobalValue::ExternalLinkage);
    }

    std::unique_ptr<llvm::Module> part_;
    llvm::ValueToValueMapTy values_;
};

std::string archive_of(llvm::Module& library) {
    polder::compiler::BuiltinArchiveWriter archive;
    for (const auto& [name, group] : groups_of(library)) {
        std::vector<std::string> symbols;
        for (const llvm::GlobalValue* member : group)
            symbols.push_back(member->getName().str());
        std::unique_ptr<llvm::Module> part = GroupCopy{library, group}.take();
        std::string bitcode;
        llvm::raw_string_ostream stream(bitcode);
        llvm::WriteBitcodeToFile(*part, stream);
        archive.add(std::move(bitcode), symbols);
    }
    return archive.finish();
}

// Lets `ours` call the functions that it replaces: libclc's <name> is renamed to libclc.<name> where `ours` declares this name.
void keep_what_is_called(llvm::Module& library, const llvm::Module& ours) {
    for (const llvm::Function& function : ours) {
        llvm::StringRef name = function.getName();
        if (!name.consume_front("libclc."))
            continue;
        llvm::Function* original = library.getFunction(name);
        if (!original)
            stop("libclc has no " + name.str());
        original->setName(function.getName());
    }
}

// Image descriptors never change while a kernel executes.
void mark_descriptor_loads(llvm::Function& function, const llvm::Value& descriptor) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
            load && llvm::getUnderlyingObject(load->getPointerOperand(), 0) == &descriptor)
            load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(function.getContext(), {}));
}

// A sampler's bits are its value; an image is a pointer to its descriptor.
void replace_handles(llvm::Module& module) {
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        const bool is_sampler = function.getName().starts_with("_Z14polder_sampler");
        if (!is_sampler && !function.getName().starts_with("_Z12polder_image"))
            continue;
        for (llvm::User* user : llvm::make_early_inc_range(function.users())) {
            auto& call = llvm::cast<llvm::CallInst>(*user);
            llvm::Value* const argument = call.getArgOperand(0);
            call.replaceAllUsesWith(is_sampler ? llvm::IRBuilder<>(&call).CreatePtrToInt(argument, call.getType())
                                               : argument);
            llvm::Function& caller = *call.getFunction();
            call.eraseFromParent();
            if (!is_sampler)
                mark_descriptor_loads(caller, *argument);
        }
        function.eraseFromParent();
    }
}

// Of fma, `afn` and `arcp` permit what lib/kernel/cl/fma.h says of close_fma and whole_fma.
void replace_weak_fma(llvm::Module& module) {
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        const bool is_of_whole = function.getName().starts_with("_Z16polder_whole_fma");
        if (!is_of_whole && !function.getName().starts_with("_Z16polder_close_fma"))
            continue;
        for (llvm::User* user : llvm::make_early_inc_range(function.users())) {
            auto& call = llvm::cast<llvm::CallInst>(*user);
            const llvm::SmallVector<llvm::Value*> operands(call.args());
            auto* const made =
                llvm::IRBuilder<>(&call).CreateIntrinsic(llvm::Intrinsic::fma, {call.getType()}, operands);
            made->setHasApproxFunc(true);
            made->setHasAllowReciprocal(is_of_whole);
            call.replaceAllUsesWith(made);
            call.eraseFromParent();
        }
        function.eraseFromParent();
    }
}

// A coefficient of a polynomial. Numbers of few bits may stand in the error of a product, as in 1 - x r, which has to be exact.
bool has_many_bits(const llvm::Value& value) {
    const llvm::APFloat* number = nullptr;
    return match(&value, llvm::PatternMatch::m_APFloat(number)) &&
           number->bitcastToAPInt().countr_zero() < llvm::APFloat::semanticsPrecision(number->getSemantics()) / 2;
}

// Where the processor has no instruction for fma, it is a call or ten operations. The steps of libclc's polynomials do with a product and a sum there, as ours
// do (loose_fma); with the instruction they are what they were.
void loosen_polynomials(llvm::Module& module) {
    for (llvm::Function& function : module)
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
                call && call->getIntrinsicID() == llvm::Intrinsic::fma && has_many_bits(*call->getArgOperand(2)))
                call->setCalledFunction(
                    llvm::Intrinsic::getOrInsertDeclaration(&module, llvm::Intrinsic::fmuladd, {call->getType()}));
}

// polder_scale(x, e) is x 2^floor(e). A conversion of a NaN to an integer must have a value.
void replace_scalings(llvm::Module& module) {
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        if (!function.getName().starts_with("_Z12polder_scale"))
            continue;
        for (llvm::User* user : llvm::make_early_inc_range(function.users())) {
            auto& call = llvm::cast<llvm::CallInst>(*user);
            llvm::IRBuilder<> at(&call);
            llvm::Value* const lower = at.CreateUnaryIntrinsic(llvm::Intrinsic::floor, call.getArgOperand(1));
            llvm::Type* const whole = call.getType()->getWithNewType(at.getInt32Ty());
            llvm::Value* const exponent =
                at.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {whole, lower->getType()}, {lower});
            auto* const made =
                at.CreateIntrinsic(llvm::Intrinsic::ldexp, {call.getType(), whole}, {call.getArgOperand(0), exponent});
            made->setHasApproxFunc(true);
            call.replaceAllUsesWith(made);
            call.eraseFromParent();
        }
        function.eraseFromParent();
    }
}

// The binary exponent of positive finite x, an integer of the size of its elements. The bits of a subnormal number are a whole number: in the last place of
// a large power of two they become one whose exponent is that of the number and `raised` more. `afn` permits other results for other x.
llvm::Value* exponent_as_integer(llvm::IRBuilder<>& at, llvm::Value& x) {
    const llvm::fltSemantics& semantics = x.getType()->getScalarType()->getFltSemantics();
    const auto mantissa_bits = llvm::APFloat::semanticsPrecision(semantics) - 1;
    const int bias = llvm::APFloat::semanticsMaxExponent(semantics),
              raised = bias + static_cast<int>(mantissa_bits) - 1;
    const llvm::APFloat shifter = llvm::scalbn(llvm::APFloat::getOne(semantics), static_cast<int>(mantissa_bits),
                                               llvm::APFloat::rmNearestTiesToEven);
    llvm::Type* const whole = x.getType()->getWithNewType(at.getIntNTy(x.getType()->getScalarSizeInBits()));
    const auto exponents = [&](int count) {
        return llvm::ConstantInt::get(whole, static_cast<uint64_t>(count) << mantissa_bits);
    };
    llvm::Value* const bits = at.CreateBitCast(&x, whole);
    llvm::Value* const in_place = at.CreateOr(bits, llvm::ConstantInt::get(whole, shifter.bitcastToAPInt()));
    llvm::Value* const normal =
        at.CreateFSub(at.CreateBitCast(in_place, x.getType()), llvm::ConstantFP::get(x.getType(), shifter));
    llvm::cast<llvm::Instruction>(normal)->setHasApproxFunc(true);
    llvm::Value* const is_subnormal =
        at.CreateFCmpOLT(&x, llvm::ConstantFP::get(x.getType(), llvm::APFloat::getSmallestNormalized(semantics)));
    llvm::Value* const biased =
        at.CreateSelect(is_subnormal, at.CreateSub(at.CreateBitCast(normal, whole), exponents(raised + bias)),
                        at.CreateSub(bits, exponents(bias)));
    return at.CreateAShr(biased, llvm::ConstantInt::get(whole, mantissa_bits));
}

// polder_exponent(x) and polder_mantissa(x).
void replace_number_parts(llvm::Module& module) {
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        const bool is_exponent = function.getName().starts_with("_Z15polder_exponent");
        if (!is_exponent && !function.getName().starts_with("_Z15polder_mantissa"))
            continue;
        for (llvm::User* user : llvm::make_early_inc_range(function.users())) {
            auto& call = llvm::cast<llvm::CallInst>(*user);
            llvm::IRBuilder<> at(&call);
            llvm::Value* const x = call.getArgOperand(0);
            llvm::Value* made = exponent_as_integer(at, *x);
            if (is_exponent) {
                made = at.CreateSIToFP(made, call.getType());
            } else {
                llvm::Type* const whole = call.getType()->getWithNewType(at.getInt32Ty());
                made = at.CreateIntrinsic(llvm::Intrinsic::ldexp, {call.getType(), whole},
                                          {x, at.CreateNeg(at.CreateTrunc(made, whole))});
                llvm::cast<llvm::Instruction>(made)->setHasApproxFunc(true);
            }
            call.replaceAllUsesWith(made);
            call.eraseFromParent();
        }
        function.eraseFromParent();
    }
}

void drop_work_group_intrinsics(llvm::Module& module) {
    for (llvm::Function& function : module)
        if (polder::compiler::is_work_group_intrinsic(function.getName().str()))
            function.deleteBody();
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> inputs;
    std::string output;
    RetargetFunction retarget = polder::compiler::retarget_to_host;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "-o" && i + 1 < argc)
            output = argv[++i];
        else if (std::string(argv[i]) == "--target" && i + 1 < argc && std::string(argv[i + 1]) == "nvptx")
            retarget = polder::compiler::retarget_to_nvptx, ++i;
        else
            inputs.push_back(argv[i]);
    }
    if (inputs.empty() || output.empty())
        stop("usage: polder-retarget-builtins [--target nvptx] LIBCLC.bc [OURS.bc...] -o OUT");

    llvm::LLVMContext context;
    // Names take time for each kernel (module/value_names.h). Text, as tests write it, cannot be read without them.
    context.setDiscardValueNames(
        llvm::none_of(inputs, [](const std::string& path) { return llvm::StringRef(path).ends_with(".ll"); }));
    std::unique_ptr<llvm::Module> library = read_retargeted(context, inputs[0], retarget);
    loosen_polynomials(*library);
    llvm::Linker linker(*library);
    for (size_t i = 1; i < inputs.size(); ++i) {
        std::unique_ptr<llvm::Module> ours = read_retargeted(context, inputs[i], retarget);
        keep_what_is_called(*library, *ours);
        if (linker.linkInModule(std::move(ours), llvm::Linker::OverrideFromSrc))
            stop(inputs[i] + ": cannot be linked");
    }
    drop_work_group_intrinsics(*library);
    replace_handles(*library);
    replace_weak_fma(*library);
    replace_scalings(*library);
    replace_number_parts(*library);
    infer_attributes(*library);

    std::string problems;
    llvm::raw_string_ostream problem_stream(problems);
    if (llvm::verifyModule(*library, &problem_stream))
        stop("the retargeted library is malformed: " + problem_stream.str().substr(0, 2000));
    std::error_code error;
    llvm::raw_fd_ostream file(output, error);
    if (error)
        stop(output + ": " + error.message());
    file << archive_of(*library);
    return 0;
}
