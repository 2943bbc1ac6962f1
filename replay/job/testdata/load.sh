#!/bin/bash
#SBATCH --job-name=chat
#SBATCH --array=0-15
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --time=0-01:30:00
#SBATCH --no-requeue
#SBATCH --output=chat-%a.log
#
# 16 shards of one load; they start at 2026-05-01T12:00:00Z.
# Submit this and the step that joins the results:
#   load=$(sbatch --parsable chat.sh)
#   sbatch --dependency=afterok:$load --wrap 'reprise merge /shared/results/chat -o /shared/results/chat.parquet'
set -eu
mkdir -p /shared/results/chat
exec \
  srun \
  reprise \
  replay \
  /data/w.parquet \
  --url=http://llm:8000 \
  --speed=2 \
  '--header=X-A=it'\''s $(HOME)' \
  --shard=/16 \
  --start-clock=2026-05-01T12:00:00Z \
  --quiet \
  --output=/shared/results/chat/shard-"$SLURM_ARRAY_TASK_ID".parquet
