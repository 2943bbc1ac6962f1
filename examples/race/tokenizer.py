"""Trains a small tokenizer for the race, since none can be fetched without a login.

    tokenizer.py FOLDER TEXT...

writes FOLDER/tok, a tokenizer as transformers reads it, and the same again below
FOLDER/hf as a Hugging Face cache with the name truth/tok: AIPerf refuses a path. It
needs the package tokenizers, which every peer brings.
"""

import json
import os
import shutil
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = '<|endoftext|>'
VOCABULARY = 12000
REVISION = 'abc' * 13 + 'a'  # a name of the form of a Git commit, which the cache needs


def main():
    folder, texts = sys.argv[1], sys.argv[2:]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    if len(tokenizer.encode(' the' * 3).ids) != 3:
        sys.exit('tokenizer: " the", which the server sends as one token, is not one here: train on more English text')

    os.makedirs(f'{folder}/tok', exist_ok=True)
    tokenizer.save(f'{folder}/tok/tokenizer.json')
    write_json(f'{folder}/tok/tokenizer_config.json', {
        'tokenizer_class': 'PreTrainedTokenizerFast', 'model_max_length': 131072, 'clean_up_tokenization_spaces': False,
        'eos_token': END, 'bos_token': END, 'pad_token': END, 'unk_token': END,
        'chat_template': "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"})
    write_json(f'{folder}/tok/config.json', {'model_type': 'gpt2', 'vocab_size': tokenizer.get_vocab_size()})

    cache = f'{folder}/hf/hub/models--truth--tok'
    shutil.copytree(f'{folder}/tok', f'{cache}/snapshots/{REVISION}', dirs_exist_ok=True)
    os.makedirs(f'{cache}/refs', exist_ok=True)
    with open(f'{cache}/refs/main', 'w') as file:
        file.write(REVISION)


def write_json(name, value):
    with open(name, 'w') as file:
        json.dump(value, file)


main()
