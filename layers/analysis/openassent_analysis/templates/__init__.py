"""Reads templates: turns a file of any template language into HTML, with the template's own conditions and includes.

Only three facts of a language are read: which text reaches the page, under which conditions, and which other
templates it contains. Everything is linear in the length of the text.
"""
