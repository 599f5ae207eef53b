"""nn.TransformerEncoder in evaluation with a padding mask.

PyTorch then makes a nested tensor of the batch, and the encoder's result has zeros where the padding was. This package has no nested tensors: the
batch stays dense and the layers get the mask, and then the same places become zeros.
"""
import functools
import types

import torch
from torch.nn.modules import transformer


def zero_what_is_padded():
    """Changes nn.TransformerEncoder.forward for tensors of OpenCL devices."""
    original = transformer.TransformerEncoder.forward

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        try:
            return original(self, src, mask, src_key_padding_mask, is_causal)
        except NotImplementedError as error:
            if "opencl: no nested tensors" not in str(error):
                raise
        # All conditions for a nested tensor hold: among them are a padding mask and no other mask.
        output = src
        for layer in self.layers:
            output = layer(output, src_key_padding_mask=src_key_padding_mask)
        is_padding = src_key_padding_mask if src_key_padding_mask.dtype == torch.bool else src_key_padding_mask != 0
        output = output.masked_fill(is_padding.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    # TorchScript compiles the original's source, with the names of this function's module.
    in_module = types.FunctionType(forward.__code__, {**vars(transformer), "torch": torch}, forward.__name__, forward.__defaults__, forward.__closure__)
    transformer.TransformerEncoder.forward = functools.wraps(original)(in_module)
