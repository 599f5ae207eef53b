// LLVM has no way to change the address space of a global in place. So every global and function is declared anew with mapped
// types, bodies are moved and their operands remapped by llvm::ValueMapper, and the old ones are deleted. Casts between
// address spaces that became equal are folded.
#include "retarget.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace polder::compiler {
namespace {

// Pointers change their address space, OpenCL's opaque types become pointers of space 0; aggregates follow.
class MappedTypes final : public llvm::ValueMapTypeRemapper {
public:
    explicit MappedTypes(AddressSpaceMap map) : map_(map) {}

    llvm::Type* remapType(llvm::Type* type) override {
        if (type->isIntegerTy() || type->isFloatingPointTy() || type->isVoidTy())
            return type;
        if (auto known = known_.find(type); known != known_.end())
            return known->second;
        llvm::Type* flat = mapped(type);
        known_[type] = flat;
        return flat;
    }

private:
    llvm::Type* mapped(llvm::Type* type) {
        if (type->isTargetExtTy())
            return llvm::PointerType::get(type->getContext(), 0);
        if (type->isPointerTy())
            return llvm::PointerType::get(type->getContext(), map_(type->getPointerAddressSpace()));
        if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
            return llvm::ArrayType::get(remapType(array->getElementType()), array->getNumElements());
        if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
            return llvm::FixedVectorType::get(remapType(vector->getElementType()), vector->getNumElements());
        if (auto* structure = llvm::dyn_cast<llvm::StructType>(type))
            return mapped(*structure);
        if (auto* function = llvm::dyn_cast<llvm::FunctionType>(type)) {
            llvm::SmallVector<llvm::Type*, 8> parameters;
            for (llvm::Type* parameter : function->params())
                parameters.push_back(remapType(parameter));
            return llvm::FunctionType::get(remapType(function->getReturnType()), parameters, function->isVarArg());
        }
        return type;
    }

    llvm::Type* mapped(llvm::StructType& structure) {
        llvm::SmallVector<llvm::Type*, 8> elements;
        bool is_changed = false;
        for (llvm::Type* element : structure.elements()) {
            elements.push_back(remapType(element));
            is_changed |= elements.back() != element;
        }
        if (!is_changed)
            return &structure;
        if (structure.isLiteral())
            return llvm::StructType::get(structure.getContext(), elements, structure.isPacked());
        return llvm::StructType::create(structure.getContext(), elements, structure.getName(), structure.isPacked());
    }

    const AddressSpaceMap map_;
    llvm::DenseMap<llvm::Type*, llvm::Type*> known_;
};

// Maps constant casts between address spaces; a cast whose spaces become equal is replaced by its operand. The mapper
// handles everything else.
class CastFolder final : public llvm::ValueMaterializer {
public:
    CastFolder(llvm::ValueToValueMapTy& values, MappedTypes& types) : values_(values), types_(types) {}

    llvm::Value* materialize(llvm::Value* value) override {
        if (llvm::isa<llvm::ConstantTargetNone>(value))
            return llvm::Constant::getNullValue(llvm::PointerType::get(value->getContext(), 0));
        auto* expression = llvm::dyn_cast<llvm::ConstantExpr>(value);
        if (expression == nullptr || expression->getOpcode() != llvm::Instruction::AddrSpaceCast)
            return nullptr;
        llvm::Value* operand = llvm::MapValue(expression->getOperand(0), values_, llvm::RF_None, &types_, this);
        llvm::Type* type = types_.remapType(expression->getType());
        if (operand->getType() == type)
            return operand;
        return llvm::ConstantExpr::getAddrSpaceCast(llvm::cast<llvm::Constant>(operand), type);
    }

private:
    llvm::ValueToValueMapTy& values_;
    MappedTypes& types_;
};

class Retargeting {
public:
    Retargeting(llvm::Module& module, const AddressSpaceNumbers& numbers, AddressSpaceMap map)
        : module_(module), numbers_(numbers), map_(map), types_(map), folder_(values_, types_),
          mapper_(values_, llvm::RF_IgnoreMissingLocals | llvm::RF_ReuseAndMutateDistinctMDs, &types_, &folder_) {}

    void run() {
        collect();
        for (llvm::GlobalVariable* variable : old_variables_)
            declare_flat(*variable);
        for (const auto [function, name] : llvm::zip(old_functions_, names_))
            declare_flat(*function, name);
        for (llvm::GlobalVariable* variable : old_variables_)
            define_flat(*variable);
        for (llvm::Function* function : old_functions_)
            define_flat(*function);
        remove_old();
        fold_casts();
    }

private:
    void collect() {
        for (llvm::GlobalVariable& variable : module_.globals())
            old_variables_.push_back(&variable);
        for (llvm::Function& function : module_)
            old_functions_.push_back(&function);
        // All names are freed before any is taken again: an intrinsic's flat name may be that of another old
        // intrinsic (llvm.memcpy.p0.p1 becomes llvm.memcpy.p0.p0), which must not be found in its place.
        for (llvm::Function* function : old_functions_) {
            names_.push_back(function->getName().str());
            function->setName("");
        }
    }

    void declare_flat(llvm::GlobalVariable& old) {
        auto* flat =
            new llvm::GlobalVariable(module_, types_.remapType(old.getValueType()), old.isConstant(), old.getLinkage(),
                                     nullptr, "", nullptr, old.getThreadLocalMode(), map_(old.getAddressSpace()));
        flat->takeName(&old);
        flat->copyAttributesFrom(&old);
        flat->setComdat(nullptr);
        mark(*flat, old);
        values_[&old] = flat;
    }

    void mark(llvm::GlobalVariable& flat, const llvm::GlobalVariable& old) const {
        if (old.getName().starts_with("llvm."))
            return;
        const unsigned space = old.getAddressSpace();
        if (space == numbers_.local)
            flat.addAttribute(local_variable_attribute);
        else if (space == numbers_.constant || old.isConstant())
            flat.addAttribute(constant_attribute);
    }

    void declare_flat(llvm::Function& old, const std::string& name) {
        auto* type = llvm::cast<llvm::FunctionType>(types_.remapType(old.getFunctionType()));
        auto* flat = llvm::Function::Create(type, old.getLinkage(), 0, "", &module_);
        // Not at creation: only setName makes the new function know that it is an intrinsic.
        flat->setName(name);
        flat->copyAttributesFrom(&old);
        flat->setComdat(nullptr);
        flat->setAttributes(flat_attributes(old.getAttributes()));
        if (old.getCallingConv() == llvm::CallingConv::SPIR_KERNEL)
            flat->addFnAttr(kernel_attribute);
        flat->setCallingConv(llvm::CallingConv::C);
        flat->removeFnAttr("target-features");
        flat->removeFnAttr("target-cpu");
        flat->removeFnAttr("frame-pointer");
        flat->removeFnAttr("stack-protector-buffer-size");
        values_[&old] = flat;
        for (auto [old_argument, flat_argument] : llvm::zip(old.args(), flat->args())) {
            flat_argument.takeName(&old_argument);
            values_[&old_argument] = &flat_argument;
        }
        if (flat->isIntrinsic())
            if (auto remangled = llvm::Intrinsic::remangleIntrinsicFunction(flat))
                values_[&old] = *remangled;
    }

    llvm::AttributeList flat_attributes(llvm::AttributeList attributes) {
        for (const unsigned index : attributes.indexes())
            for (const auto kind : {llvm::Attribute::ByVal, llvm::Attribute::StructRet, llvm::Attribute::ByRef,
                                    llvm::Attribute::ElementType})
                if (llvm::Attribute attribute = attributes.getAttributeAtIndex(index, kind); attribute.isValid())
                    attributes = attributes.replaceAttributeTypeAtIndex(module_.getContext(), index, kind,
                                                                        types_.remapType(attribute.getValueAsType()));
        return attributes;
    }

    void define_flat(llvm::GlobalVariable& old) {
        if (old.hasInitializer())
            llvm::cast<llvm::GlobalVariable>(values_[&old])
                ->setInitializer(llvm::cast<llvm::Constant>(
                    llvm::MapValue(old.getInitializer(), values_, llvm::RF_None, &types_, &folder_)));
    }

    void define_flat(llvm::Function& old) {
        auto* flat = llvm::cast<llvm::Function>(values_[&old]);
        if (old.isDeclaration())
            return;
        flat->splice(flat->begin(), &old);
        llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 8> metadata;
        old.getAllMetadata(metadata);
        for (auto [kind, node] : metadata)
            flat->setMetadata(kind,
                              llvm::MapMetadata(node, values_, llvm::RF_ReuseAndMutateDistinctMDs, &types_, &folder_));
        for (llvm::Instruction& instruction : llvm::instructions(flat))
            remap(instruction);
    }

    void remap(llvm::Instruction& instruction) {
        mapper_.remapInstruction(instruction);
        mapper_.remapDbgRecordRange(&module_, instruction.getDbgRecordRange());
        for (llvm::DbgVariableRecord& record : llvm::filterDbgVars(instruction.getDbgRecordRange()))
            forget_address_space(record);
        if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
            call->setCallingConv(llvm::CallingConv::C);
        if (llvm::isa<llvm::AddrSpaceCastInst>(instruction) &&
            instruction.getOperand(0)->getType() == instruction.getType())
            casts_.push_back(&instruction);
    }

    // Clang's debug information has numbered address spaces of other devices, which debuggers for the host do not know.
    static void forget_address_space(llvm::DbgVariableRecord& variable) {
        unsigned space = 0;
        const llvm::DIExpression* rest = llvm::DIExpression::extractAddressClass(variable.getExpression(), space);
        variable.setExpression(rest != nullptr ? const_cast<llvm::DIExpression*>(rest)
                                               : llvm::DIExpression::get(variable.getContext(), {}));
    }

    void remove_old() {
        for (llvm::Function* function : old_functions_)
            function->dropAllReferences();
        for (llvm::GlobalVariable* variable : old_variables_)
            variable->dropAllReferences();
        for (llvm::Function* function : old_functions_) {
            function->removeDeadConstantUsers();
            function->eraseFromParent();
        }
        for (llvm::GlobalVariable* variable : old_variables_) {
            variable->removeDeadConstantUsers();
            variable->eraseFromParent();
        }
    }

    void fold_casts() {
        for (llvm::Instruction* cast : casts_) {
            cast->replaceAllUsesWith(cast->getOperand(0));
            cast->eraseFromParent();
        }
    }

    llvm::Module& module_;
    const AddressSpaceNumbers numbers_;
    const AddressSpaceMap map_;
    llvm::SmallVector<llvm::GlobalVariable*, 16> old_variables_;
    llvm::SmallVector<llvm::Function*, 16> old_functions_;
    std::vector<std::string> names_;
    llvm::SmallVector<llvm::Instruction*, 16> casts_;
    llvm::ValueToValueMapTy values_;
    MappedTypes types_;
    CastFolder folder_;
    llvm::ValueMapper mapper_;
};

}  // namespace

void retarget(llvm::Module& module, const AddressSpaceNumbers& numbers, AddressSpaceMap map) {
    Retargeting{module, numbers, map}.run();
}

}  // namespace polder::compiler
