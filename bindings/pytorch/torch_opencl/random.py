"""Random numbers of OpenCL devices: Philox, so that a seed gives the same numbers on every device."""
import torch

_ops = torch.ops.opencl


def _generator(device="opencl"):
    device = torch.device("opencl", device) if isinstance(device, int) else torch.device(device)
    return _ops.default_generator(-1 if device.index is None else device.index)


def _all():
    return [_ops.default_generator(index) for index in range(_ops.device_count())]


def get_rng_state(device="opencl"):
    return _generator(device).get_state()


def get_rng_state_all():
    return [generator.get_state() for generator in _all()]


def set_rng_state(new_state, device="opencl"):
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states):
    for generator, state in zip(_all(), new_states):
        generator.set_state(state)


def manual_seed(seed):
    _generator().manual_seed(int(seed))


def manual_seed_all(seed):
    for generator in _all():
        generator.manual_seed(int(seed))


def seed():
    return _generator().seed()


def seed_all():
    first = seed()
    manual_seed_all(first)
    return first


def initial_seed():
    return _generator().initial_seed()
