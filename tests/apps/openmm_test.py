#!/usr/bin/env python3
"""OpenMM's OpenCL platform on Polder: forces and energies of salt water with particle-mesh Ewald, and a simulation that keeps its energy, against
OpenMM's reference platform."""
import os
import sys

SKIPPED = 77
sys.path.insert(0, os.environ.get("POLDER_PYTHON_APPS", ""))
try:
    import numpy as np
    import openmm
    from openmm import unit
except ImportError as error:
    print(f"skipped: {error} (PyPI; tools/setup.sh)")
    sys.exit(1 if os.environ.get("POLDER_PYTHON_APPS") else SKIPPED)

EDGE = 6  # molecules
SPACING = 0.31  # nm


def salt_water():
    """A lattice of rigid TIP3P water, every 20th molecule replaced by an ion, alternately sodium and chloride."""
    system, positions = openmm.System(), []
    length = EDGE * SPACING
    system.setDefaultPeriodicBoxVectors((length, 0, 0), (0, length, 0), (0, 0, length))
    forces = openmm.NonbondedForce()
    forces.setNonbondedMethod(openmm.NonbondedForce.PME)
    forces.setCutoffDistance(0.8)
    forces.setEwaldErrorTolerance(1e-4)
    for number, place in enumerate(np.ndindex(EDGE, EDGE, EDGE)):
        first = system.getNumParticles()
        center = (np.array(place) + 0.5) * SPACING
        if number % 20 == 10:
            sign = 1 if number % 40 == 10 else -1
            system.addParticle(22.99 if sign > 0 else 35.45)
            forces.addParticle(sign, 0.33 if sign > 0 else 0.44, 0.0116 if sign > 0 else 0.493)
            positions.append(center)
            continue
        for mass, charge, sigma, epsilon, at in ((15.999, -0.834, 0.3151, 0.636, (0, 0, 0)), (1.008, 0.417, 1, 0, (0.09572, 0, 0)),
                                                 (1.008, 0.417, 1, 0, (-0.02400, 0.09266, 0))):
            system.addParticle(mass)
            forces.addParticle(charge, sigma, epsilon)
            positions.append(center + at)
        for a, b, distance in ((0, 1, 0.09572), (0, 2, 0.09572), (1, 2, 0.15139)):
            system.addConstraint(first + a, first + b, distance)
            forces.addException(first + a, first + b, 0, 1, 0)
    system.addForce(forces)
    return system, np.array(positions)


def context(system, positions, platform, **properties):
    integrator = openmm.VerletIntegrator(0.0005)  # ps
    made = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform), properties)
    made.setPositions(positions)
    made.applyConstraints(1e-6)
    return made


def state_of(made):
    state = made.getState(getForces=True, getEnergy=True)
    energy = unit.kilojoule_per_mole
    return (state.getForces(asNumpy=True).value_in_unit(energy / unit.nanometer),
            state.getPotentialEnergy().value_in_unit(energy), state.getKineticEnergy().value_in_unit(energy))


def main():
    system, positions = salt_water()
    forces, potential, _ = state_of(context(system, positions, "Reference"))
    scale = np.sqrt((forces**2).sum(axis=1).mean())
    for precision, bound in (("single", 1e-3), ("mixed", 1e-3), ("double", 2e-4)):
        made = context(system, positions, "OpenCL", Precision=precision)
        found, energy, _ = state_of(made)
        worst = np.abs(found - forces).max() / scale
        print(f"{precision}: forces within {worst:.1e} of the mean, energy {energy:.3f} of {potential:.3f} kJ/mol")
        assert worst < bound and abs(energy - potential) < bound * abs(potential)
        if precision == "mixed":
            made.getIntegrator().step(20)
            begun = sum(state_of(made)[1:])
            made.getIntegrator().step(200)
            ended = sum(state_of(made)[1:])
            print(f"energy {begun:.3f} before and {ended:.3f} kJ/mol after 200 steps")
            assert abs(ended - begun) < 0.01 * abs(begun) + 5


if __name__ == "__main__":
    main()
