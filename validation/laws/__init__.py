"""The page of the measured laws, from the kept data of many sweeps.

setting     one sweep: its kept data, what it says, how the mean-field model predicts it
page        the numbers of all sweeps as Markdown
figures     the figures
text        the fixed words: what each sweep is, what each contrast changes, how to read it
"""
