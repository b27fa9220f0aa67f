"""A judge broken on purpose."""

from trialogue.inference.walks.judge import Judge


class ForgetfulJudge(Judge):
    """Asks the verifier again about prefixes it has judged."""

    def _values(self, batch, rows):
        batch.count_verifier_calls(rows)
        return self._verifier.values(batch, rows)
