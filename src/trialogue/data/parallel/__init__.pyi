from .splitting import Split as Split
from .splitting import split as split
from .text import ParallelText as ParallelText
from .vocabulary import SubwordVocabulary as SubwordVocabulary
