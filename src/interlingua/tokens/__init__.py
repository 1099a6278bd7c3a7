"""Token estimates for texts, images and requests, without the tokenizer of the model."""
