-- Whether what an agent finds is put into a better order by the reranker.
ALTER TABLE agents ADD COLUMN rerank BOOLEAN NOT NULL DEFAULT FALSE;
