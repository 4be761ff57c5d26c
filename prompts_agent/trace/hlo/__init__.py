"""What an HLO program says: instructions, parameters and shardings, collectives, mesh, memory.

The same records are made from a serialized HloProto, from an HLO text dump, or from the text of a
single instruction that a trace gives as an event's name.
"""
