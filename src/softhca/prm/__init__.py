"""The programmer's reference as data: layouts, opcodes, statuses, events, syndromes. No behaviour."""
