#!/bin/bash
#SBATCH --job-name=june
#SBATCH --array=0-31%8
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=512M
#SBATCH --time=1-00:00:00
#SBATCH --requeue
#SBATCH --output=june-%a.log
#
# 32 shards of one import. Submit this and the step that makes the trace:
#   import=$(sbatch --parsable june.sh)
#   sbatch --dependency=afterok:$import --wrap 'reprise merge --finish /shared/results/june -o /shared/results/june.parquet --key-file='\''/shared/the key'\'''
# A shard that failed is submitted again by its number: sbatch --array=3 june.sh
set -eu
mkdir -p /shared/results/june
exec \
  srun \
  reprise \
  import \
  /shared/logs \
  --format=openai-log \
  '--map=a=$(HOME)' \
  --shard=/32 \
  '--key-file=/shared/the key' \
  --output=/shared/results/june \
  --quiet
