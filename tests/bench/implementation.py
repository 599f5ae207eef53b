"""What the benchmarks that compare Polder with another OpenCL implementation share."""
import math
import os
import pathlib


class Implementation:
    """An OpenCL implementation alone in a directory for the loader. `settings` are further environment variables."""

    def __init__(self, icd, scratch, settings):
        self.directory = pathlib.Path(scratch)
        self.directory.mkdir()
        (self.directory / "one.icd").write_text(pathlib.Path(icd).read_text())
        self.environment = os.environ | {
            "OCL_ICD_VENDORS": str(self.directory), "OPENCL_VENDOR_PATH": str(self.directory)} | settings


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
