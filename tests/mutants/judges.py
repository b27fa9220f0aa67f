"""A judge broken on purpose."""

from trialogue.inference.walks.judge import Judge


class ForgetfulJudge(Judge):
    """Asks the verifier again about prefixes it has judged."""

    def _values(self, batch, rows):
        batch.count_verifier_calls(rows)
        return self._parts[0].values(batch, rows)


class UnnarrowedJudge(Judge):
    """Asks the slow part about every child, whatever the others say."""

    def children(self, rows, support):
        slow, fast = self._parts[-1:], self._parts[:-1]
        self._parts = slow
        values = super().children(rows, support)
        self._parts = fast
        return values * super().children(rows, support)


class LastPartJudge(Judge):
    """Takes the value of the part that was asked child by child for the product."""

    def _values(self, batch, rows, parts=None, others=None):
        return super()._values(batch, rows, parts, None if others is None else others.sign())
