"""Every operator of PyTorch's database (OpInfo) against the CPU: survey.py [--shard I/N] [--samples N] [--device D] [--json FILE] [NAME…].

For each operator: results for each type, gradients and gradcheck, and whether it has kernels or runs on the CPU. An operator that
fails, ends its process or takes too long does not end the survey: operators run in a child process, which is started again.
`survey.py --table FILE…` prints what runs where, as in ../operators.md, and on stderr what failed. The tests of the operators
that run natively are in test_operators.py. TORCH_OPENCL_LONG_TESTS=1 takes all types.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import traceback
import warnings

HERE = pathlib.Path(__file__).parent
# Their results are random, or memory that was never written.
WITHOUT_VALUES = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential", "geometric", "log_normal", "multinomial",
    "new_empty", "new_empty_strided", "normal", "rand_like", "randint", "randint_like", "randn", "randn_like", "resize_", "resize_as_",
    "uniform", "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "nn.functional.fractional_max_pool2d", "svd_lowrank", "pca_lowrank",
    "nn.functional.fractional_max_pool3d",
}
# Their second and third results are float32 for float16, as on CUDA; the CPU rounds them to float16.
WITH_STATISTICS = {"_native_batch_norm_legit", "native_batch_norm", "native_layer_norm"}


def has_values(op, sample):
    """Whether results do not depend on the generator, of which each kind of device has its own."""
    numbers = [*sample.args, sample.kwargs.get("dropout_p")]
    drops = "attention" in op.name and any(isinstance(number, float) and 0 < number < 1 for number in numbers)
    return op.name not in WITHOUT_VALUES and not drops


def first_line(error):
    text = f"{type(error).__name__}: {error}".strip()
    return " ".join(text.split())[:400]


class Survey:
    def __init__(self, device, samples):
        import torch
        import test_operators as shared

        self.torch, self.shared, self.device, self.samples = torch, shared, device, samples

    def results(self, op, record):
        torch, shared = self.torch, self.shared
        for dtype in [known for known in (shared.TYPES if shared.LONG else shared.SHORT_TYPES) if known in op.dtypes]:
            for number, sample in enumerate(shared.samples_of(op, dtype, self.samples)):
                torch.manual_seed(3)
                try:
                    expected = shared.call(op, sample, "cpu")
                except Exception:
                    continue  # not on the CPU either
                torch.opencl.reset_fallbacks()
                torch.manual_seed(3)
                try:
                    got = shared.call(op, sample, self.device)
                    assert len(got) == len(expected), "another number of results"
                    for a, b in zip(got, expected):
                        if op.name in WITH_STATISTICS and a.dtype == torch.float32:
                            b = b.float()
                        if not has_values(op, sample):
                            assert a.dtype == b.dtype and a.shape == b.shape
                        elif shared.is_comparable(op, sample, b, dtype):
                            if b.is_sparse or b.is_quantized or b.layout != torch.strided:
                                a, b = a.to_dense(), b.to_dense()
                            shared.close(a, b, dtype)
                except Exception as error:
                    record["failures"].append(["result", str(dtype), number, first_line(error)])
                record["calls"] += 1
                for name, count in torch.opencl.fallbacks().items():
                    record["fallbacks"][name] = record["fallbacks"].get(name, 0) + count

    def gradients(self, op, record):
        torch, shared = self.torch, self.shared
        for number, sample in enumerate(shared.samples_of(op, torch.float32, self.samples, requires_grad=True)):
            torch.manual_seed(3)
            try:
                expected = shared.gradients_of(op, sample, "cpu")
            except Exception:
                continue
            if expected is None:
                continue
            torch.opencl.reset_fallbacks()
            torch.manual_seed(3)
            try:
                got = shared.gradients_of(op, sample, self.device)
                assert len(got) == len(expected)
                for a, b in zip(got, expected):
                    assert (a is None) == (b is None), "a gradient is missing"
                    if b is not None and has_values(op, sample):
                        shared.close(a, b, torch.float32)
            except Exception as error:
                record["failures"].append(["gradient", "torch.float32", number, first_line(error)])
            record["gradients"] += 1
            for name, count in torch.opencl.fallbacks().items():
                record["gradient fallbacks"][name] = record["gradient fallbacks"].get(name, 0) + count

    def gradcheck(self, op, record):
        torch, shared = self.torch, self.shared
        if torch.float64 not in op.dtypes or op.name in shared.WITHOUT_GRADCHECK:
            return
        for number, sample in enumerate(shared.samples_of(op, torch.float64, min(2, self.samples), requires_grad=True)):
            if not has_values(op, sample):
                continue

            def check(where):
                torch.manual_seed(3)
                return shared.gradcheck(op, sample, where)
            try:
                if not check("cpu"):
                    continue
            except Exception:
                continue
            try:
                check(self.device)
            except Exception as error:
                record["failures"].append(["gradcheck", "torch.float64", number, first_line(error)])
            record["gradchecks"] += 1

    def survey(self, op):
        record = {"name": op.name, "variant": op.variant_test_name, "calls": 0, "gradients": 0, "gradchecks": 0,
                  "failures": [], "fallbacks": {}, "gradient fallbacks": {}}
        begin = time.time()
        for part in [self.results] + ([self.gradients, self.gradcheck] if op.supports_autograd else []):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    part(op, record)
            except Exception as error:  # of the samples themselves
                record["failures"].append([part.__name__, "", -1, first_line(error) + " at " + traceback.format_exc()[-300:]])
        record["seconds"] = round(time.time() - begin, 1)
        return record


def child(arguments):
    """Reads numbers of operators from stdin, writes a record for each."""
    from torch.testing._internal.common_methods_invocations import op_db

    survey = Survey(arguments.device, arguments.samples)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(survey.survey(op_db[int(line)])), flush=True)


class Child:
    def __init__(self, arguments):
        command = [sys.executable, __file__, "--child", "--device", arguments.device, "--samples", str(arguments.samples)]
        self.errors = open(os.devnull if not arguments.errors else arguments.errors, "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=HERE)
        self.process.stdout.readline()

    def survey(self, number, seconds):
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        timer.cancel()
        return json.loads(line) if line.startswith("{") else None


def main(arguments):
    from torch.testing._internal.common_methods_invocations import op_db

    shard, shards = (int(part) for part in arguments.shard.split("/"))
    numbers = [i for i, op in enumerate(op_db) if i % shards == shard and (not arguments.names or op.name in arguments.names)]
    worker, records = Child(arguments), []
    out = open(arguments.json, "a") if arguments.json else sys.stdout
    for number in numbers:
        record = worker.survey(number, arguments.seconds)
        if record is None:
            code = worker.process.wait()
            op = op_db[number]
            record = {"name": op.name, "variant": op.variant_test_name, "calls": 0, "gradients": 0, "gradchecks": 0, "fallbacks": {},
                      "gradient fallbacks": {}, "failures": [["process", "", -1, f"ended with {code} (-9: took too long)"]]}
            worker = Child(arguments)
        records.append(record)
        print(json.dumps(record), file=out, flush=True)
    worker.process.stdin.close()
    worker.process.wait()
    failed = [record for record in records if record["failures"]]
    print(f"{len(records)} operators, {sum(record['calls'] for record in records)} results, "
          f"{sum(record['gradients'] for record in records)} gradients, {sum(record['gradchecks'] for record in records)} gradchecks; "
          f"{len(failed)} operators failed", file=sys.stderr)


def label(record):
    return record["name"] + (f" ({record['variant']})" if record["variant"] else "")


def table(files):
    records = [json.loads(line) for file in files for line in open(file)]
    records.sort(key=lambda record: (record["name"].lower(), record["variant"]))
    kinds = {"native": [], "part": [], "cpu": []}
    for record in records:
        ran = {**record["fallbacks"], **record["gradient fallbacks"]}
        kind = "native" if not ran else "part"
        if record["calls"] and sum(record["fallbacks"].values()) >= record["calls"]:
            kind = "cpu"
        kinds[kind].append((record, ran))
    print(f"{len(records)} entries: {len(kinds['native'])} run wholly on the device, {len(kinds['part'])} with parts on the CPU, "
          f"{len(kinds['cpu'])} on the CPU.\n")
    print("## Wholly on the device, with gradients\n\n" + ", ".join(label(record) for record, _ in kinds["native"]) + "\n")
    for kind, title in (("part", "Some samples, or the gradient, run an operator on the CPU"), ("cpu", "On the CPU")):
        print(f"## {title}\n\n| entry | operators on the CPU |\n|---|---|")
        for record, ran in kinds[kind]:
            print(f"| {label(record)} | {', '.join(sorted(name.removeprefix('aten::') for name in ran))} |")
        print()
    for record in records:
        for kind, dtype, number, text in record["failures"]:
            print(f"FAILED {label(record)}: {kind} {dtype} sample {number}: {text}", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--seconds", type=float, default=300, help="the most that one operator may take")
    parser.add_argument("--json")
    parser.add_argument("--errors", help="a file for stderr of the children")
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.table:
        table(given.names)
    elif given.child:
        child(given)
    else:
        main(given)
