"""Files on local disk and objects of stores become records, in any format of `headrace.formats`."""
