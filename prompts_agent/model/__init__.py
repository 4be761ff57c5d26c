"""Transformer architectures: dims, parameters, FLOPs and bytes, from three kinds of source.

A name (`find_model`), a Hugging Face config.json (`from_hf_config`) or the weight shapes of a
traced program (`infer_model`) become one `ModelSpec`; `count` and `cost` work out what it holds and
costs.
"""
