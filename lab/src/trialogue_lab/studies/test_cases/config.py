"""Settings of the study: how often each model's measurements are repeated, and the presets."""

from dataclasses import dataclass

from trialogue.errors import InputError
from trialogue_lab.ledger.settings import Natural, Seeds, Settings
from trialogue_lab.studies.test_cases.decodings import DecodingRule, Extent, decodings_of
from trialogue_lab.studies.test_cases.subjects import (
    CODE_LLAMA,
    PILOT_SMOLLM2,
    QUICK_SMOLLM2,
    SCRATCH,
    SMALLEST,
    SMOLLM2,
    Role,
    Subject,
)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = (0, 1)
    """Repetitions with the pretrained model: names, demonstrations, draws and verifiers of each are its own."""
    comparisons: Natural = 2
    """Repetitions, the first of them, that draw the comparisons among layers, depths, thresholds and names too."""
    planes: Natural = 2
    """Repetitions, the first of them, that draw the plane of top-p and temperature too."""
    scratch_seeds: Seeds = tuple(range(1000, 1004))
    """Repetitions with a model trained from scratch, its own in each; all of them draw everything."""
    pretrained: Subject = QUICK_SMOLLM2
    scratch: Subject = SCRATCH

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        for field in ("comparisons", "planes"):
            if getattr(self, field) > len(self.seeds):
                raise InputError(field, getattr(self, field), "use at most the number of seeds")
        if set(self.seeds) & set(self.scratch_seeds):
            raise InputError("scratch_seeds", self.scratch_seeds, "share none with seeds")

    def subject(self, role: Role) -> Subject:
        """The settings of one of the two models."""
        return self.pretrained if role == "pretrained" else self.scratch

    def repetitions(self, role: Role, extent: Extent) -> tuple[int, ...]:
        """The seeds of the repetitions that draw the decodings of an extent."""
        if role == "scratch":
            return self.scratch_seeds
        counts = {"all": len(self.seeds), "comparisons": self.comparisons, "plane": self.planes}
        return self.seeds[: counts[extent]]

    def decodings(self, role: Role, extent: Extent) -> list[DecodingRule]:
        """The decodings that the repetitions of an extent draw."""
        subject = self.subject(role)
        others = tuple(layer for layer in subject.layers if layer != subject.layer)
        depths = tuple(depth for depth in subject.depths if depth > 1)
        found = decodings_of(extent, others, depths)
        # The surrogate reads a name alone, of which none misleads.
        return [rule for rule in found if not (rule.out_of_distribution and subject.is_surrogate)]


PRESETS = {
    "smoke": Config(
        seeds=(0,), comparisons=1, planes=0, scratch_seeds=(1000,), pretrained=SMALLEST, scratch=SMALLEST
    ),
    "pilot": Config(
        seeds=(100, 101, 102),
        comparisons=0,
        planes=0,
        scratch_seeds=tuple(range(1100, 1104)),
        pretrained=PILOT_SMOLLM2,
    ),
    "default": Config(),
    "night": Config(
        seeds=tuple(range(12)),
        comparisons=6,
        planes=4,
        scratch_seeds=tuple(range(1000, 1024)),
        pretrained=SMOLLM2,
    ),
    # The rows of `night` are the pilot of this size: claims whose effects are as large as there are decided with a
    # power of 0.8. The seeds are new.
    "weekend": Config(
        seeds=tuple(range(200, 255)),
        comparisons=55,
        planes=8,
        scratch_seeds=tuple(range(1200, 1224)),
        pretrained=SMOLLM2,
    ),
    "paper": Config(seeds=tuple(range(5)), comparisons=5, planes=5, pretrained=CODE_LLAMA),
}
