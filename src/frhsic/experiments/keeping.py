r"""Parameters of trained models that later measures need, in one safetensors file for each experiment and protocol.

`{out}/models/{experiment}-{protocol}.safetensors`; a tensor is named `dataset/method/weight/repeat/parameter`.
"""
