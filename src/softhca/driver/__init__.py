"""A small host-side driver of the HCA: bring-up, command channel, page ledger, events, verbs-like objects, close."""
