#!/usr/bin/python3
"""Reads a command line as fish does, where a backslash within single quotes escapes, and becomes that program."""

import os
import sys

line, words, word, quote, i = sys.argv[1], [], None, "", 0
while i < len(line):
    c = line[i]
    if c == "\\" and i + 1 < len(line) and (quote == "" or line[i + 1] in "\\" + quote):
        i += 1
        word = (word or "") + line[i]
    elif quote == "" and c in "'\"":
        quote, word = c, word or ""
    elif c == quote:
        quote = ""
    elif quote == "" and c == " ":
        words, word = words + ([word] if word is not None else []), None
    else:
        word = (word or "") + c
    i += 1
if quote:
    sys.exit("fish: unexpected end of string, quotes are not balanced")
words += [word] if word is not None else []
os.execvp(words[0], words)
